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

	"motorpool/telematics"
)

const (
	fetchTimeout = 10 * time.Second
	maxKeys      = 1 << 20 // bytes of a JWKS
)

// loadKeyring reads the keys from a file or a URL, once. It waits for a URL that does not answer yet, as the service may
// start later than the fleet; cancelling ctx ends the wait without an error.
func loadKeyring(ctx context.Context, from string, logger *slog.Logger) (telematics.Keyring, error) {
	if !strings.HasPrefix(from, "http://") && !strings.HasPrefix(from, "https://") {
		text, err := os.ReadFile(from)
		if err != nil {
			return nil, fmt.Errorf("read keys: %w", err)
		}
		return telematics.ParseKeyring(text)
	}
	ring, err := backoff.RetryNotifyWithData(
		func() (telematics.Keyring, error) { return fetchKeyring(ctx, from) },
		backoff.WithContext(backoff.NewExponentialBackOff(backoff.WithMaxElapsedTime(0), backoff.WithMaxInterval(fetchTimeout)), ctx),
		func(err error, wait time.Duration) {
			logger.Warn("keys not there yet", "again_in", wait.Round(time.Millisecond), "err", err)
		},
	)
	if ctx.Err() != nil {
		return nil, nil
	}
	return ring, err
}

func fetchKeyring(ctx context.Context, from string) (telematics.Keyring, error) {
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
	return telematics.ParseKeyring(text)
}
