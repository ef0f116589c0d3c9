package load

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// These goroutines end a while after the client becomes idle.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*HostClient).connsCleaner"), goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*TCPDialer).tcpAddrsClean"))
}
