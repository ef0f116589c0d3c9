package devstack_test

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"motorpool/simulator/devstack"
)

func TestStart_PortInUseIsEADDRINUSE(t *testing.T) {
	port := occupied(t)
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	starts := map[string]func() error{
		"embedded broker, units": func() error {
			_, err := devstack.StartMQTT(devstack.MQTTConfig{UnitsAddr: addr})
			return err
		},
		"embedded broker, service": func() error {
			_, err := devstack.StartMQTT(devstack.MQTTConfig{ServiceAddr: addr})
			return err
		},
		"miniredis": func() error {
			_, err := devstack.StartMiniredis(addr)
			return err
		},
	}
	for name, start := range starts {
		if err := start(); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("%s: error %v, want EADDRINUSE", name, err)
		}
	}
}

func TestStart_RealServerWithItsPortInUseIsEADDRINUSE(t *testing.T) {
	starts := map[string]func(port int) error{
		devstack.RedisServer: func(port int) error {
			_, err := devstack.StartRedisOn(t.TempDir(), port)
			return err
		},
		devstack.MosquittoServer: func(port int) error {
			_, err := devstack.StartMosquittoOn(devstack.MosquittoConfig{Dir: t.TempDir()}, port, occupied(t))
			return err
		},
	}
	for server, start := range starts {
		t.Run(server, func(t *testing.T) {
			devstack.NeedServer(t, server)
			if err := start(occupied(t)); !errors.Is(err, syscall.EADDRINUSE) {
				t.Errorf("error %v, want EADDRINUSE", err)
			}
		})
	}
}

func TestOnFreePorts_TriesAnotherPortWhenOneIsInUse(t *testing.T) {
	calls := 0
	got, err := devstack.OnFreePorts(2, func(ports []int) (int, error) {
		calls++
		if calls < 3 {
			return 0, fmt.Errorf("start: %w", syscall.EADDRINUSE)
		}
		return ports[0], nil
	})
	if err != nil || got == 0 || calls != 3 {
		t.Errorf("port %d, error %v after %d calls", got, err, calls)
	}
	calls = 0
	if _, err := devstack.OnFreePorts(1, func([]int) (int, error) { calls++; return 0, errors.New("broken") }); err == nil || calls != 1 {
		t.Errorf("another failure: %d calls and error %v, want one call", calls, err)
	}
}
