package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"motorpool/guard"
)

// Listeners are the open listeners of the service.
type Listeners struct {
	Public   net.Listener
	Internal net.Listener
	Health   net.Listener // nil: none
}

// Listen opens the addresses of the settings: all, or none and an error.
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

// trustedProxies reads the networks and addresses of the setting. A network that holds every
// address is refused: each caller could then choose its own.
func (c Config) trustedProxies() ([]*net.IPNet, error) {
	var networks []*net.IPNet
	for _, text := range list(c.TrustedProxies) {
		one := text
		if address, err := netip.ParseAddr(text); err == nil {
			one = netip.PrefixFrom(address, address.BitLen()).String()
		}
		_, network, err := net.ParseCIDR(one)
		if err != nil {
			return nil, fmt.Errorf("--trusted-proxies: %q is neither an address such as 10.0.0.5 nor a network such as 10.0.0.0/24", text)
		}
		if ones, _ := network.Mask.Size(); ones == 0 {
			return nil, fmt.Errorf("--trusted-proxies: %s is every address, so any caller could choose its own; name your proxies", text)
		}
		networks = append(networks, network)
	}
	return networks, nil
}

// httpServer is a server with its listener.
type httpServer struct {
	*http.Server
	listener net.Listener
}

// serveHTTP serves until the context ends, and then waits for open calls, at most for timeout.
func serveHTTP(ctx context.Context, panics *guard.Guard, log *slog.Logger, timeout time.Duration, servers ...httpServer) error {
	serving, ctx := errgroup.WithContext(ctx)
	for _, f := range servers {
		f.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelDebug)
		serving.Go(func() error {
			// Without a listener, the instance ends.
			if err := panics.Try("serve http", func() error { return f.Serve(f.listener) }); !errors.Is(err, http.ErrServerClosed) {
				return fmt.Errorf("serve http: %w", err)
			}
			return nil
		})
		serving.Go(func() error {
			<-ctx.Done()
			ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
			defer cancel()
			if err := panics.Try("end http", func() error { return f.Shutdown(ending) }); err != nil {
				return fmt.Errorf("calls cut off at the end: %w", err)
			}
			return nil
		})
	}
	return serving.Wait()
}

const (
	// reservedFiles is how many open files the service keeps for its listeners, the MQTT broker,
	// the payment processor, other servers and files, in addition to the connections to Postgres
	// and Redis.
	reservedFiles = 150
	// redisConnsPerProcessor is the pool of the Redis library.
	redisConnsPerProcessor = 10
	// healthConnections bounds the health listener; it is part of reservedFiles.
	healthConnections = 50
	// mostConnections bounds the default where files are not limited.
	mostConnections = 1_000_000
)

// reserve is how many open files the public listener must leave for everything else.
func (c Config) reserve() int {
	return reservedFiles + c.DatabaseConns + redisConnsPerProcessor*runtime.NumCPU()
}

// maxConnections returns how many connections the public listener may have open.
func (c Config) maxConnections() (int, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("read the limit of open files: %w", err)
	}
	return connectionsWithin(c.MaxConnections, int(min(limit.Cur, mostConnections)), c.reserve())
}

// connectionsWithin returns the bound for a setting (0: as many as fit), a limit of open files and
// a reserve.
func connectionsWithin(setting, files, reserve int) (int, error) {
	room := files - reserve
	switch {
	case setting < 0:
		return 0, fmt.Errorf("--max-connections: %d is negative", setting)
	case room < 1:
		return 0, fmt.Errorf("the limit of open files is %d, and the service needs %d for itself: raise it (ulimit -n)", files, reserve)
	case setting > room:
		return 0, fmt.Errorf(
			"--max-connections: %d and %d that the service needs for itself are more than the limit of open files, %d (ulimit -n)",
			setting, reserve, files,
		)
	case setting == 0:
		return room, nil
	}
	return setting, nil
}
