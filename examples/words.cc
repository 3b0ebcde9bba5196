// words.cc - counts words of files, and profiles what it does while it does it.
//
//	c++ -g -O2 -o words words.cc $(pkg-config --cflags --libs kiln)
//	./words cpu.pb.gz heap.pb.gz /usr/share/common-licenses/*
//	kiln -tags cpu.pb.gz		time by phase
//	kiln -top heap.pb.gz		what the table of words takes
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <iostream>
#include <kiln.h>
#include <string>
#include <unistd.h>
#include <unordered_map>
#include <vector>

using Words = std::unordered_map<std::string, long>;

static void read_words(const char *path, Words &words)
{
	kiln::label phase("phase", "read");
	std::ifstream in(path);
	std::string word;

	while (in >> word)
		words[word]++;
}

static void print_most(const Words &words)
{
	kiln::label phase("phase", "sort");
	std::vector<std::pair<long, std::string>> sorted;

	for (const auto &w : words)
		sorted.emplace_back(w.second, w.first);
	std::sort(sorted.rbegin(), sorted.rend());
	for (size_t i = 0; i < sorted.size() && i < 10; i++)
		std::cout << sorted[i].first << '\t' << sorted[i].second << '\n';
}

// The descriptor of a new file. Ends the program if there can be none.
static int create(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	if (fd < 0) {
		std::cerr << "words: " << path << ": " << std::strerror(errno) << '\n';
		std::exit(1);
	}
	return fd;
}

static void tell(const char *what, int failed)
{
	if (failed)
		std::cerr << "words: " << what << ": " << std::strerror(-failed) << '\n';
}

int main(int argc, char **argv)
{
	if (argc < 4) {
		std::cerr << "usage: words CPU-PROFILE HEAP-PROFILE FILE...\n";
		return 2;
	}
	Words words;

	kiln_set_heap_rate(4096); // finer than the standard, for a small program
	tell("cpu", kiln_start_cpu_profile(create(argv[1])));
	for (int i = 3; i < argc; i++)
		read_words(argv[i], words);
	print_most(words);
	tell("cpu", kiln_stop_cpu_profile());
	tell("heap", kiln_write_profile("heap", create(argv[2])));
}
