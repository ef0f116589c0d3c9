package link_test

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"motorpool/broker/link/linktest"
	"motorpool/internal/require"
	"motorpool/simulator/devstack"
)

// Rounds of the fault harness show that units are routed to shards, and past one that is down.
func TestHAProxy_ForwardsOnlyAConnectWithAUserName(t *testing.T) {
	t.Parallel()
	devstack.NeedServer(t, devstack.MosquittoServer)
	devstack.NeedServer(t, devstack.HAProxyServer)
	dir := t.TempDir()
	authority, err := devstack.NewAuthority(filepath.Join(dir, "authority"))
	require.NoError(t, err)
	pair, err := authority.Issue("mqtt")
	require.NoError(t, err)
	shard, err := devstack.StartMosquitto(devstack.MosquittoConfig{
		Dir: filepath.Join(dir, "shard"), Units: map[string]string{string(unit): linktest.UnitPassword},
		ServicePassword: linktest.ServicePassword, CertFile: pair.CertFile, KeyFile: pair.KeyFile,
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = shard.Close() })
	balancer, err := devstack.StartHAProxy(devstack.HAProxyConfig{
		Dir: filepath.Join(dir, "haproxy"), Public: pair, CAFile: authority.CAFile,
		Shards: []string{strings.TrimPrefix(shard.UnitsURL(), "ssl://")},
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = balancer.Close() })
	address := strings.TrimPrefix(balancer.URL(), "ssl://")
	var clients sync.WaitGroup
	for name, packet := range map[string]string{
		"no MQTT":      "GET / HTTP/1.1\r\nHost: mqtt\r\n\r\n",
		"no user name": "\x10\x10\x00\x04MQTT\x04\x02\x00\x3c\x00\x04unit",
		"no CONNECT":   "\xc0\x00",
	} {
		clients.Go(func() {
			conn, err := tls.DialWithDialer(&net.Dialer{Timeout: 10 * time.Second}, "tcp", address, authority.Trusted())
			if err != nil {
				t.Errorf("%s: connect: %v", name, err)
				return
			}
			defer conn.Close()
			_, err = conn.Write([]byte(packet))
			if err = errors.Join(err, conn.SetReadDeadline(time.Now().Add(15*time.Second))); err != nil {
				t.Errorf("%s: write: %v", name, err)
			}
			if answer, err := io.ReadAll(conn); len(answer) > 0 || os.IsTimeout(err) {
				t.Errorf("%s: answered %q, %v; want a closed connection", name, answer, err)
			}
		})
	}
	clients.Wait()
}
