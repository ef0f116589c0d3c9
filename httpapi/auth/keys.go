package auth

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"

	"motorpool/guard"
)

// KeysConfig sets the source of the keys that sign access tokens. Source is required.
type KeysConfig struct {
	// Source is a JWKS (RFC 7517): an http or https URL, or the path of a file.
	Source string
	// Refresh is how often the source is read. Defaults to 5 min.
	Refresh time.Duration
	// Gap is the least time between two readings that tokens with an unknown key id
	// can cause. Defaults to 10 s.
	Gap time.Duration
	// Timeout is how long one reading may take. Defaults to 3 s.
	Timeout time.Duration
	// Log defaults to slog.Default().
	Log *slog.Logger
}

// Keys is the set of public keys that sign access tokens, kept fresh by Run. Keys that
// were read stay in force while the source is unavailable. Safe for concurrent use.
type Keys struct {
	KeysConfig
	current atomic.Pointer[keySet] // nil: nothing was read yet
	reading chan struct{}          // holds an element while the source is read
	tried   time.Time              // the last reading; guarded by reading
}

// NewKeys returns an empty set. It touches neither file nor network.
func NewKeys(config KeysConfig) *Keys {
	config.Refresh = cmp.Or(config.Refresh, defaultRefresh)
	config.Gap = cmp.Or(config.Gap, defaultGap)
	config.Timeout = cmp.Or(config.Timeout, defaultTimeout)
	config.Log = cmp.Or(config.Log, slog.Default())
	return &Keys{KeysConfig: config, reading: make(chan struct{}, 1)}
}

// Run reads the source immediately and then at intervals of Refresh; after failures, at
// growing intervals. It blocks until the context ends; its error is always nil.
func (k *Keys) Run(ctx context.Context) error {
	retry := backoff.NewExponentialBackOff(backoff.WithInitialInterval(minRetry),
		backoff.WithMaxInterval(maxRetry), backoff.WithMaxElapsedTime(0))
	for {
		wait := k.Refresh
		if err := k.read(ctx, 0); err == nil {
			retry.Reset()
		} else if ctx.Err() == nil {
			wait = min(wait, retry.NextBackOff())
			k.Log.WarnContext(ctx, "token keys not read", "source", redacted(k.Source), "retry_in", wait, "err", err)
		}
		if !guard.Pause(ctx, wait) {
			return nil
		}
	}
}

const errNoKeys UnavailableError = "the keys that sign access tokens were not read yet"

// Ready returns nil once there are keys. Its error has a method Unavailable() bool.
func (k *Keys) Ready(context.Context) error {
	if k.current.Load() == nil {
		return errNoKeys
	}
	return nil
}

// find returns the key with an id for an algorithm. An unknown id may be a new key's: then
// the source is read again, but no more often than Gap.
func (k *Keys) find(ctx context.Context, id string, alg jwa.SignatureAlgorithm) (any, error) {
	if err := k.Ready(ctx); err != nil {
		return nil, err
	}
	if key, ok := k.current.Load().find(id, alg); ok {
		return key, nil
	}
	if err := k.read(ctx, k.Gap); err != nil {
		k.Log.WarnContext(ctx, "token keys not read", "source", redacted(k.Source), "err", err)
	}
	key, ok := k.current.Load().find(id, alg)
	if !ok {
		return nil, fmt.Errorf("no %s key %.64q", alg, id)
	}
	return key, nil
}

// read reads the source, unless that was tried less than age ago. It waits for a concurrent read.
func (k *Keys) read(ctx context.Context, age time.Duration) error {
	select {
	case k.reading <- struct{}{}:
		defer func() { <-k.reading }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if time.Since(k.tried) < age {
		return nil
	}
	k.tried = time.Now()
	// If a caller disconnects, the others must still get the new keys.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), k.Timeout)
	defer cancel()
	text, err := k.fetch(ctx)
	if err != nil {
		return fmt.Errorf("read key set: %w", err)
	}
	set, err := newKeySet(text)
	if err != nil {
		return err
	}
	if known := k.current.Load(); known == nil || !bytes.Equal(known.text, set.text) {
		k.current.Store(set)
		k.Log.InfoContext(ctx, "token keys changed", "source", redacted(k.Source), "keys", len(set.keys))
	}
	return nil
}

func (k *Keys) fetch(ctx context.Context) ([]byte, error) {
	if !isURL(k.Source) {
		return os.ReadFile(k.Source)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, k.Source, nil)
	if err != nil {
		return nil, withoutURL(err)
	}
	response, err := jwk.DefaultHTTPClient().Do(request) // never follows from https to http
	if err != nil {
		return nil, withoutURL(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answered %s", redacted(k.Source), response.Status)
	}
	return io.ReadAll(http.MaxBytesReader(nil, response.Body, maxJWKS))
}

func isURL(source string) bool {
	return strings.HasPrefix(source, "http://") || strings.HasPrefix(source, "https://")
}

// redacted hides a password and the query, which may be a key, in the source's URL.
func redacted(source string) string {
	if !isURL(source) {
		return source
	}
	u, err := url.Parse(source)
	if err != nil {
		return "(not a URL)"
	}
	u.RawQuery = ""
	return u.Redacted()
}

// withoutURL removes the address, which the log has without its query, from an error of net/http.
func withoutURL(err error) error {
	if failed := (*url.Error)(nil); errors.As(err, &failed) {
		return failed.Err
	}
	return err
}
