package mosquitto_test

import (
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"motorpool/internal/require"
	"motorpool/mosquitto"
	"motorpool/simulator/devstack"
)

// Idle connections exhaust the limit of the units' listener, and do not affect the other listener.
func TestConnections_ConnectionsOfUnitsAreBoundedAndTheServicesAreNot(t *testing.T) {
	t.Parallel()
	devstack.NeedServer(t, devstack.MosquittoServer)
	const most = 20
	broker := startMosquitto(t, devstack.MosquittoConfig{ServicePassword: servicePassword, MaxUnitConnections: most})
	var open []net.Conn
	for range 2 * most {
		c, err := net.Dial("tcp", strings.TrimPrefix(broker.UnitsURL(), "tcp://"))
		require.NoError(t, err)
		defer c.Close()
		open = append(open, c)
	}
	_ = open[len(open)-1].SetReadDeadline(time.Now().Add(patience))
	if _, err := open[len(open)-1].Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a connection beyond the limit is open: %v", err)
	}
	login{url: broker.ServiceURL(), id: "instance", user: mosquitto.ServiceUser, password: servicePassword}.mustDial(t)
}
