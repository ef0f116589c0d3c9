package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"motorpool/internal/keyfile"
	"motorpool/telematics"
	"motorpool/telematics/signing"
)

// pollEvery is the interval at which files of signing keys and certificates are read again.
const pollEvery = time.Second

// signingKeys are the private keys of the last readable version of a file. Run follows the file.
// Safe for concurrent use.
type signingKeys struct {
	current atomic.Pointer[signing.Keychain]
	refused atomic.Pointer[error] // why nothing is signed; nil: it is
	source  keyfile.Source[signing.Keychain]
}

func (c Config) signingKeys(log *slog.Logger) (*signingKeys, error) {
	k := &signingKeys{source: keyfile.Source[signing.Keychain]{
		Name: c.SigningKeys, Every: pollEvery, Parse: signing.ParseKeychain, Log: log,
		Read: func(context.Context) ([]byte, error) { return os.ReadFile(c.SigningKeys) },
	}}
	chain, err := k.source.Load(context.Background())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("--signing-keys: %w (make one: motorpool keys new > %s)", err, c.SigningKeys)
	}
	if err != nil {
		return nil, fmt.Errorf("--signing-keys: %s: %w", c.SigningKeys, err)
	}
	if info, err := os.Stat(c.SigningKeys); err == nil && info.Mode().Perm()&forOthers != 0 {
		log.Warn(
			"every account of this machine may read or change the private signing keys", "file", c.SigningKeys,
			"mode", info.Mode().Perm(), "fix", "chmod o= "+c.SigningKeys,
		)
	}
	k.current.Store(&chain)
	return k, nil
}

// forOthers is what a file's mode grants to those that are neither its owner nor of its group.
const forOthers = fs.FileMode(0o007)

// Sign signs with the active key. A command is signed once: after a switch of keys, earlier
// commands are retransmitted with their first signature. Where another running instance has a key
// that more units hold, it signs nothing: the units would reject it. Not during a rotation: see
// presence.keyReady.
func (k *signingKeys) Sign(c telematics.Claims) ([]byte, error) {
	if why := k.refused.Load(); why != nil {
		return nil, *why
	}
	return k.current.Load().Sign(c)
}

// refuse has nothing signed for a reason; nil: it is again.
func (k *signingKeys) refuse(why error) {
	if why == nil {
		k.refused.Store(nil)
		return
	}
	k.refused.Store(&why)
}

func (k *signingKeys) active() string { return k.current.Load().Active().ID }

// replaced reports whether the file has a key that another one has replaced as active. A file that
// was made anew, or never got the present key, has none such.
func (k *signingKeys) replaced(key string) bool {
	return slices.ContainsFunc(*k.current.Load(), func(f signing.FleetKey) bool { return f.ID == key && !f.Deactivated.IsZero() })
}

var signingKeyInfo = prometheus.NewDesc(
	"motorpool_signing_key_info", "Always 1; the label is the id of the key with which this instance signs commands.",
	[]string{"key"}, nil,
)

var signingKeyActivated = prometheus.NewDesc(
	"motorpool_signing_key_activated_timestamp_seconds",
	"Time at which the key with which this instance signs commands was activated. Absent where its file does not say.",
	nil, nil,
)

// Describe implements prometheus.Collector.
func (k *signingKeys) Describe(to chan<- *prometheus.Desc) {
	to <- signingKeyInfo
	to <- signingKeyActivated
}

// Collect implements prometheus.Collector.
func (k *signingKeys) Collect(to chan<- prometheus.Metric) {
	active := k.current.Load().Active()
	to <- prometheus.MustNewConstMetric(signingKeyInfo, prometheus.GaugeValue, 1, active.ID)
	if since := cmp.Or(active.Activated, active.Created); !since.IsZero() {
		to <- prometheus.MustNewConstMetric(signingKeyActivated, prometheus.GaugeValue, float64(since.Unix()))
	}
}

// Run polls the file and uses changed keys, until the context ends.
func (k *signingKeys) Run(ctx context.Context) error {
	return k.source.Watch(ctx, func(chain signing.Keychain) {
		before := k.active()
		k.current.Store(&chain)
		if after := k.active(); after != before {
			k.source.Log.Info("signing key switched", "from", before, "to", after, "keys", len(chain))
		} else {
			k.source.Log.Info("signing keys changed", "active", after, "keys", len(chain))
		}
	})
}

// serveUnits returns the public halves of all keys, with which units verify commands.
func (k *signingKeys) serveUnits(w http.ResponseWriter, _ *http.Request) {
	jwks, err := signing.EncodeKeyring(k.current.Load().Keyring())
	if err != nil {
		k.source.Log.Error("public keys not encoded", "err", err)
		http.Error(w, "the public keys cannot be encoded; see the log", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/jwk-set+json")
	w.Header().Set("Cache-Control", "no-cache") // they may change at any moment
	_, _ = w.Write(jwks)                        // the caller may have disconnected
}
