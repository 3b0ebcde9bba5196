/* weak.h - functions that glibc alone has; the Makefile includes this in front of all. They are
 * weak, or the loader of another libc would not start the program at all. The agent does nothing
 * there. Who asks whether there is one needs a `#pragma weak` as well. */
#ifndef AGENT_WEAK_H
#define AGENT_WEAK_H

__asm__(".weak __cxa_at_quick_exit, __register_atfork, __libc_stack_end, dladdr1, dlvsym, "
	"_dl_find_object, _r_debug\n"
	".weak malloc_trim, mallinfo2, sigabbrev_np, strerrordesc_np, strerrorname_np\n"
	".weak __memcpy_chk, __strcpy_chk, __snprintf_chk, __vsnprintf_chk\n");

#endif
