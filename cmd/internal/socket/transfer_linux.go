//go:build amd64 || arm64

package socket

import (
	"io"
	"sync"
	"syscall"
	"unsafe"
)

// transfer is one direction of a connection, in which one call is made at a time.
type transfer struct {
	try func(fd uintptr) bool // made once: it would be allocated with each call

	mu   sync.Mutex
	data []byte
	done int
	err  error
}

// run moves bytes, and waits where the socket has none, or no room.
func (t *transfer) run(wait func(func(fd uintptr) bool) error, p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data, t.done, t.err = p, 0, nil
	err := wait(t.try)
	if err == nil {
		err = t.err
	}
	t.data = nil
	return t.done, err
}

// read takes what has come, and reports whether there was anything: bytes, the end or an error.
func (t *transfer) read(fd uintptr) bool {
	n, errno := call(syscall.SYS_READ, fd, t.data)
	if errno == syscall.EAGAIN {
		return false
	}
	if errno != 0 {
		t.err = errno
		return true
	}
	t.done = n
	return true
}

// write sends what is left, and reports whether nothing is, or whether it failed.
func (t *transfer) write(fd uintptr) bool {
	for t.done < len(t.data) {
		n, errno := call(syscall.SYS_WRITE, fd, t.data[t.done:])
		if errno == syscall.EAGAIN {
			return false
		}
		if errno != 0 {
			t.err = errno
			return true
		}
		if n == 0 {
			t.err = io.ErrUnexpectedEOF // as package net says
			return true
		}
		t.done += n
	}
	return true
}

// call makes a system call on a socket that does not block.
func call(number, fd uintptr, p []byte) (int, syscall.Errno) {
	for {
		n, _, errno := syscall.RawSyscall(number, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
		if errno != syscall.EINTR {
			return int(n), errno
		}
	}
}

// silent reports whether nothing has come, neither bytes nor the end.
func silent(fd uintptr) bool {
	var one [1]byte
	_, _, errno := syscall.RawSyscall6(syscall.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(&one[0])), 1, syscall.MSG_PEEK|syscall.MSG_DONTWAIT, 0, 0)
	return errno == syscall.EAGAIN
}
