package httpapi

import (
	"bytes"
	"sync"
)

// buffers are used for one writing each: who waits holds none.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// maxBuffer is the largest that is kept: more than that is rarely written at once.
const maxBuffer = 2 * maxWrite

// takeBuffer returns an empty buffer, to be given back.
func takeBuffer() *bytes.Buffer { return buffers.Get().(*bytes.Buffer) }

func giveBuffer(b *bytes.Buffer) {
	if b.Cap() <= maxBuffer {
		b.Reset()
		buffers.Put(b)
	}
}
