package app

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"motorpool/internal/keyfile"
)

// certificate holds a certificate with its chain and its private key, from the last versions of two
// files that matched each other. watch follows the files. Safe for concurrent use.
type certificate struct {
	setting string // that names the certificate's file
	file    string
	effect  string // of unusable files, for the log
	log     *slog.Logger
	source  keyfile.Source[*tls.Certificate]
	current atomic.Pointer[tls.Certificate]
	failing atomic.Bool // the present files are unusable
}

// loadCertificate returns nil where no file is named. keySetting is the setting of the private key.
func loadCertificate(setting, file, keySetting, keyFile string, log *slog.Logger) (*certificate, error) {
	switch {
	case file == "" && keyFile == "":
		return nil, nil
	case keyFile == "":
		return nil, fmt.Errorf("--%s: missing; --%s needs the file of its private key", keySetting, setting)
	case file == "":
		return nil, fmt.Errorf("--%s: missing; --%s needs the file of its certificate", setting, keySetting)
	}
	c := &certificate{setting: setting, file: file, effect: "the former one stays in use", log: log}
	c.source = keyfile.Source[*tls.Certificate]{
		Name: file, Every: pollEvery, Parse: parsePair, Report: c.report, Log: log,
		Read: func(context.Context) ([]byte, error) { return readPair(file, keyFile) },
	}
	pair, err := c.source.Load(context.Background())
	if err != nil {
		return nil, fmt.Errorf("--%s: %w (a certificate and its private key of --%s, as PEM)", setting, err, keySetting)
	}
	c.current.Store(pair)
	return c, nil
}

func readPair(file, keyFile string) ([]byte, error) {
	certificate, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	key, err := os.ReadFile(keyFile)
	if err != nil {
		return nil, err
	}
	return append(append(certificate, '\n'), key...), nil
}

// parsePair reads a certificate, its chain and its key from one text: blocks of the other kind are
// skipped.
func parsePair(text []byte) (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(text, text)
	return &pair, err
}

// get returns the one in use, for a callback of crypto/tls.
func get[Hello any](c *certificate) func(Hello) (*tls.Certificate, error) {
	return func(Hello) (*tls.Certificate, error) { return c.current.Load(), nil }
}

// watch polls the files and uses new ones once they match each other, until the context ends.
func (c *certificate) watch(ctx context.Context) error {
	return c.source.Watch(ctx, func(pair *tls.Certificate) {
		c.current.Store(pair)
		c.log.Info("certificate changed", "setting", c.setting, "file", c.file, "expires", pair.Leaf.NotAfter)
	})
}

func (c *certificate) report(err error) {
	c.failing.Store(err != nil)
	if err != nil {
		c.log.Error("certificate not read", "setting", c.setting, "file", c.file, "effect", c.effect, "err", err)
	} else {
		c.log.Info("certificate is readable again", "setting", c.setting, "file", c.file)
	}
}

// register exports metrics of the certificate in use.
func (c *certificate) register(at prometheus.Registerer) {
	create := promauto.With(prometheus.WrapRegistererWith(prometheus.Labels{"setting": c.setting, "file": c.file}, at))
	create.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "motorpool_certificate_expiry_timestamp_seconds", Help: "When the certificate in use expires, in seconds since 1970.",
	}, func() float64 { return float64(c.current.Load().Leaf.NotAfter.Unix()) })
	create.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "motorpool_certificate_reload_failing", Help: "1 while the files of the certificate cannot be used; else 0.",
	}, func() float64 {
		if c.failing.Load() {
			return 1
		}
		return 0
	})
}
