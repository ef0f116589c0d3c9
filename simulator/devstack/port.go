package devstack

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"syscall"
)

// Ports below those that the kernel assigns to outgoing connections. A client that repeatedly dials
// a port of that range while its server is down can get the same port as its local one, connect to
// itself, and prevent the restart of the server.
const (
	firstPort = 20000
	lastPort  = 32000
)

// clashes is how many ports are tried: another program may take a free one before the server
// listens.
const clashes = 5

// FreePort returns a loopback port that is free at the moment.
func FreePort() (int, error) {
	var err error
	for range 100 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		if err = portIsFree(port); err == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("find a free port: %w", err)
}

// portIsFree returns a syscall.EADDRINUSE if a program listens on the port.
func portIsFree(port int) error {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	return l.Close()
}

// onFreePorts starts a server that cannot choose a free port.
func onFreePorts[S any](count int, start func(ports []int) (S, error)) (S, error) {
	var server S
	var err error
	for range clashes {
		ports := make([]int, count)
		for i := range ports {
			if ports[i], err = FreePort(); err != nil {
				return server, err
			}
		}
		if server, err = start(ports); !errors.Is(err, syscall.EADDRINUSE) {
			return server, err
		}
	}
	return server, err
}
