package load

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// These end a while after the client is idle.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*HostClient).connsCleaner"), goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*TCPDialer).tcpAddrsClean"))
}
