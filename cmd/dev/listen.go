package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"syscall"

	"motorpool/internal/app"
)

const (
	defaultHTTP        = "127.0.0.1:8080"
	defaultInternal    = "127.0.0.1:8081"
	defaultMQTT        = "127.0.0.1:1883"
	defaultMQTTService = "127.0.0.1:1884"
)

const freePort = "127.0.0.1:0"

// listenOn starts a listener on an address. The address of a flag must be free; if the default
// address is in use, it uses a free port, and logs that.
func listenOn[T any](log *slog.Logger, flag, given, fallback string, start func(address string) (T, error)) (T, error) {
	address := cmp.Or(given, fallback)
	// Each address is probed, as start may open more than one.
	switch err := probe(address); {
	case errors.Is(err, syscall.EADDRINUSE) && given == "":
		log.Warn("default address in use; taking a free port", "flag", "--"+flag, "address", fallback)
		address = freePort
	case errors.Is(err, syscall.EADDRINUSE):
		return *new(T), fmt.Errorf("--%s: %s is in use by another program", flag, given)
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

func (e *environment) listen() (app.Listeners, error) {
	public, err := listenOn(e.log, "http", e.HTTP, defaultHTTP, listenTCP)
	if err != nil {
		return app.Listeners{}, err
	}
	internal, err := listenOn(e.log, "internal", e.Internal, defaultInternal, listenTCP)
	if err != nil {
		return app.Listeners{}, errors.Join(err, public.Close())
	}
	return app.Listeners{Public: public, Internal: internal}, nil
}

// closeListeners closes what the service has not closed already.
func closeListeners(l app.Listeners) error {
	for _, listener := range []net.Listener{l.Public, l.Internal} {
		if err := listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			return err
		}
	}
	return nil
}
