package service_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"motorpool/telematics"
)

// Idle connections without a token exhaust the public listener. The service still reaches its
// servers, and responds.
func TestConnections_IdleOnesDoNotExhaustTheService(t *testing.T) {
	t.Parallel()
	s := embeddedStack(t, 1)
	s.drive(nil, healthy)
	config := s.config()
	config.VehicleRate = 0
	files := 220 + config.DatabaseConns + 10*runtime.NumCPU()
	i := s.serveChild(config, exec.Command("sh", "-c", fmt.Sprintf(`ulimit -n %d && exec "$0"`, files), os.Args[0]))
	for range files + 50 {
		c, err := net.Dial("tcp", strings.TrimPrefix(i.base, "http://"))
		s.must(err)
		defer c.Close()
	}
	for range 20 {
		if r := i.control(1, telematics.Lock, "Connection", "close"); r.status != http.StatusOK && !r.starved() {
			t.Fatalf("lock with idle connections: %d %s", r.status, r.text)
		}
	}
	i.says(http.StatusOK, "ready")
	if evicted := i.metric("motorpool_connections_evicted_total"); evicted == 0 {
		t.Error("want idle connections closed")
	}
}
