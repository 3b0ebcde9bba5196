# Completes kiln's flags in bash, from the table that the program itself reads them by.
_kiln()
{
	local word=${COMP_WORDS[COMP_CWORD]/#--/-}

	COMPREPLY=()
	[[ $word == -* ]] || return
	if [[ ${COMP_WORDS[1]} == diff ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$("$1" diff --complete 2>/dev/null)" -- "${COMP_WORDS[COMP_CWORD]}")
		return
	fi
	mapfile -t COMPREPLY < <(compgen -W "$("$1" --complete 2>/dev/null)" -- "$word")
}
complete -o default -F _kiln kiln
