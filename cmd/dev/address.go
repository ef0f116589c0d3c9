package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"syscall"
)

const (
	defaultHTTP        = "127.0.0.1:8080"
	defaultInternal    = "127.0.0.1:8081"
	defaultMQTT        = "127.0.0.1:1883"
	defaultMQTTService = "127.0.0.1:1884"
)

const freePort = "127.0.0.1:0"

// open starts what listens on an address. An address that was asked for must be
// free; where a default one is taken, a free port does as well, and is said.
func open[T any](log *slog.Logger, flag, asked, otherwise string, start func(address string) (T, error)) (T, error) {
	address := cmp.Or(asked, otherwise)
	// Asked of each address by itself: what start opens may be more than one.
	switch err := probe(address); {
	case errors.Is(err, syscall.EADDRINUSE) && asked == "":
		log.Warn("default address in use; taking a free port", "flag", "--"+flag, "address", otherwise)
		address = freePort
	case errors.Is(err, syscall.EADDRINUSE):
		return *new(T), fmt.Errorf("--%s: %s is in use by another program", flag, asked)
	case err != nil:
		return *new(T), fmt.Errorf("--%s: %w", flag, err)
	}
	return start(address)
}

func probe(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	return l.Close()
}

func listenTCP(address string) (net.Listener, error) { return net.Listen("tcp", address) }
