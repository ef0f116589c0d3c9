// Package socket makes connections whose system calls Go's scheduler is not told of.
//
// Each read and write of package net may wake the scheduler's monitor, which then looks every 20 µs whether the call still holds a
// processor. That is for calls that block. A socket of the net package never blocks: a read that finds nothing and a write that
// finds no room return at once, and the network poller says when to try again. Where a service does little but short calls, the monitor is
// a fifth of its CPU.
package socket
