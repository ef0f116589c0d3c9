package app

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// Listeners are where the service is reached.
type Listeners struct {
	Public   net.Listener
	Internal net.Listener
	Health   net.Listener // nil: none
}

// Listen opens the addresses of the settings.
func (c Config) Listen() (Listeners, error) {
	public, err := listen("http", c.HTTP)
	if err != nil {
		return Listeners{}, err
	}
	internal, err := listen("internal", c.Internal)
	if err != nil {
		return Listeners{}, errors.Join(err, public.Close())
	}
	if c.Health == "" {
		return Listeners{Public: public, Internal: internal}, nil
	}
	health, err := listen("health", c.Health)
	if err != nil {
		return Listeners{}, errors.Join(err, public.Close(), internal.Close())
	}
	return Listeners{Public: public, Internal: internal, Health: health}, nil
}

func listen(flag, address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("--%s: %s is in use by another program; name another address, or stop it: %w", flag, address, err)
	}
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	return l, nil
}
