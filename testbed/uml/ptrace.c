/* Preloaded into Debian's User-Mode Linux, whose buffer for a processor's floating-point state is smaller than that state is
 * on processors with AMX: ptrace() refuses to fill it. Here the state is read and written whole, and UML sees as much as it
 * has room for, with a header that names only the parts that are in it. On other processors nothing is changed. */
#define _GNU_SOURCE
#include <cpuid.h>
#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* Where the header of the state names its parts, a bit a part (Intel's manual, volume 1, section 13.4.2). */
enum { PARTS_AT = 512, STATE_BYTES_MAX = 65536, PARTS_MAX = 63 };

static unsigned char state[STATE_BYTES_MAX] __attribute__((aligned(64)));

static long kernels_ptrace(long request, long process, long address, void *data)
{
	return syscall(SYS_ptrace, request, process, address, data);
}

/* The parts of the state that end within so many bytes: the first two always, others as the processor says. It is asked once: UML
 * always has the same room, and in a virtual machine each question costs as much as hundreds of system calls. */
static uint64_t parts_within(size_t bytes)
{
	static size_t asked_for;
	static uint64_t parts;
	unsigned part, size, offset, flags, unused;

	if (asked_for == bytes)
		return parts;
	asked_for = bytes;
	parts = 3;
	for (part = 2; part < PARTS_MAX; part++) {
		__cpuid_count(0xd, part, size, offset, flags, unused);
		if (size != 0 && (size_t)offset + size <= bytes)
			parts |= UINT64_C(1) << part;
	}
	return parts;
}

/* Reads the whole state of a process; its size, or -1. */
static ssize_t read_state(long process)
{
	struct iovec whole = { state, sizeof state };

	if (kernels_ptrace(PTRACE_GETREGSET, process, NT_X86_XSTATE, &whole) < 0)
		return -1;
	return (ssize_t)whole.iov_len;
}

static long get_state(long process, struct iovec *room)
{
	uint64_t parts;
	ssize_t bytes = read_state(process);

	if (bytes < 0)
		return -1;
	if ((size_t)bytes < room->iov_len)
		room->iov_len = (size_t)bytes;
	memcpy(room->iov_base, state, room->iov_len);
	if ((size_t)bytes > room->iov_len) {
		memcpy(&parts, state + PARTS_AT, sizeof parts);
		parts &= parts_within(room->iov_len);
		memcpy((unsigned char *)room->iov_base + PARTS_AT, &parts, sizeof parts);
	}
	return 0;
}

static long set_state(long process, const struct iovec *given)
{
	struct iovec whole = { state, 0 };
	ssize_t bytes = read_state(process);

	if (bytes < 0)
		return -1;
	/* Parts that the header does not name are reset, as they are for UML. */
	if ((size_t)bytes > given->iov_len)
		memset(state + given->iov_len, 0, (size_t)bytes - given->iov_len);
	memcpy(state, given->iov_base, given->iov_len);
	whole.iov_len = (size_t)bytes;
	return kernels_ptrace(PTRACE_SETREGSET, process, NT_X86_XSTATE, &whole);
}

long ptrace(enum __ptrace_request request, ...)
{
	va_list arguments;
	long process, address, word;
	void *data;

	va_start(arguments, request);
	process = va_arg(arguments, int);
	address = va_arg(arguments, long);
	data = va_arg(arguments, void *);
	va_end(arguments);
	if (address == NT_X86_XSTATE && request == PTRACE_GETREGSET)
		return get_state(process, data);
	if (address == NT_X86_XSTATE && request == PTRACE_SETREGSET)
		return set_state(process, data);
	if (request != PTRACE_PEEKTEXT && request != PTRACE_PEEKDATA && request != PTRACE_PEEKUSER)
		return kernels_ptrace(request, process, address, data);
	/* The C library returns the word that the kernel stores. */
	if (kernels_ptrace(request, process, address, &word) < 0)
		return -1;
	errno = 0;
	return word;
}
