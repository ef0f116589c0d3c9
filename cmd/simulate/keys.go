package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"

	"motorpool/internal/keyfile"
	"motorpool/simulator"
	"motorpool/telematics/signing"
)

const (
	fetchTimeout = 10 * time.Second
	maxKeys      = 1 << 20         // bytes of a JWKS
	pollEvery    = 2 * time.Second // for changes
)

// newKeys returns a source of the fleet's public keys, which may change while the fleet runs.
func newKeys(from string, logger *slog.Logger) *keyfile.Source[signing.Keyring] {
	read := func(context.Context) ([]byte, error) { return os.ReadFile(from) }
	if isURL(from) {
		read = func(ctx context.Context) ([]byte, error) { return fetch(ctx, from) }
	}
	return &keyfile.Source[signing.Keyring]{Name: from, Every: pollEvery, Read: read, Parse: signing.ParseKeyring, Log: logger}
}

func isURL(from string) bool {
	return strings.HasPrefix(from, "http://") || strings.HasPrefix(from, "https://")
}

// loadKeyring waits for a URL that does not answer yet, as the service may start later than the
// fleet; cancelling ctx ends the wait without an error.
func loadKeyring(ctx context.Context, keys *keyfile.Source[signing.Keyring]) (signing.Keyring, error) {
	if !isURL(keys.Name) {
		ring, err := keys.Load(ctx)
		if err != nil {
			return nil, fmt.Errorf("read keys: %w", err)
		}
		return ring, nil
	}
	ring, err := backoff.RetryNotifyWithData(
		func() (signing.Keyring, error) { return keys.Load(ctx) },
		backoff.WithContext(backoff.NewExponentialBackOff(backoff.WithMaxElapsedTime(0), backoff.WithMaxInterval(fetchTimeout)), ctx),
		func(err error, wait time.Duration) {
			keys.Log.Warn("keys not there yet", "again_in", wait, "err", err)
		},
	)
	if ctx.Err() != nil {
		return nil, nil
	}
	return ring, err
}

// follow gives changed keys to the cars, until ctx is cancelled.
func follow(ctx context.Context, keys *keyfile.Source[signing.Keyring], fleet *simulator.Fleet) error {
	return keys.Watch(ctx, func(ring signing.Keyring) {
		fleet.SetKeyring(ring)
		keys.Log.Info("cars have new keys", "keys", len(ring))
	})
}

func fetch(ctx context.Context, from string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, backoff.Permanent(fmt.Errorf("fetch keys: %w", err))
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("fetch keys: %w", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxKeys))
	if err != nil {
		return nil, fmt.Errorf("fetch keys from %s: %w", from, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("fetch keys from %s: %s", from, response.Status)
	}
	return text, nil
}
