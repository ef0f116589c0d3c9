package money

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	_ "github.com/lib/pq" // an account of its own: the store under test must not be its own witness

	"motorpool/cmd/internal/app"
	"motorpool/cmd/internal/service"
	"motorpool/rental"
	"motorpool/simulator/devstack"
	"motorpool/simulator/sandbox"
	"motorpool/telematics"
)

const (
	servicePassword = "service-secret"
	tokenIssuer     = "chaos"
)

// world is everything that runs.
type world struct {
	Config
	fall    func(error) // ends the round: the world itself broke
	figures *figures

	tokens     telematics.SigningKey
	admin      string // token
	sealing    string // key that agency keys are sealed with
	agencyKeys map[telematics.AgencyID]rental.AgencyKey

	postgres  *devstack.Postgres
	redis     *devstack.Redis
	mosquitto *devstack.Mosquitto
	processor *sandbox.Server
	relay     *relay
	instances []*instance
	db        *sql.DB // past the service

	clients  []*client
	bookings []booking
	tours    [][]*Deed // of each booking
	healed   atomic.Bool
	thawed   time.Time // when an instance woke up last, with what it had been asked before
	undo     []func() error
}

// instance is a process of the service, which one fault at a time strikes.
type instance struct {
	*service.Instance
	struck sync.Mutex
}

func (w *world) build(ctx context.Context) error {
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"keys", w.makeKeys},
		{"servers", w.startServers},
		{"bookings", w.furnish},
		{"instances", w.startInstances},
	} {
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("build the world: %s: %w", step.what, err)
		}
	}
	return nil
}

func (w *world) later(undo func() error) { w.undo = append(w.undo, undo) }

// tearDown ends everything in reverse.
func (w *world) tearDown() error {
	var failures []error
	for i := len(w.undo) - 1; i >= 0; i-- {
		failures = append(failures, w.undo[i]())
	}
	w.undo = nil
	return errors.Join(failures...)
}

func (w *world) path(name string) string { return filepath.Join(w.Dir, name) }

func (w *world) makeKeys(context.Context) error {
	signing, err := telematics.NewSigningKey()
	if err != nil {
		return err
	}
	if w.tokens, err = telematics.NewSigningKey(); err != nil {
		return err
	}
	private, errPrivate := telematics.EncodeSigningKeys(signing)
	public, errPublic := telematics.EncodeKeyring(w.tokens.Keyring())
	var key [32]byte
	_, _ = rand.Read(key[:]) // it never fails
	w.sealing = hex.EncodeToString(key[:])
	w.admin, err = w.token(telematics.Actor{Subject: "chaos", Role: telematics.Admin}, app.AllAgencies)
	return errors.Join(err, errPrivate, errPublic,
		os.WriteFile(w.path("signing.jwks"), private, 0o600), os.WriteFile(w.path("tokens.jwks"), public, 0o600))
}

func (w *world) token(actor telematics.Actor, scope string) (string, error) {
	return app.Grant{Issuer: tokenIssuer, Audience: tokenIssuer, Actor: actor, Scope: scope, Lifetime: 24 * time.Hour}.Mint(w.tokens)
}

func (w *world) startServers(ctx context.Context) error {
	var err error
	if w.mosquitto, err = devstack.StartMosquitto(devstack.MosquittoConfig{Dir: w.path("mosquitto"), ServicePassword: servicePassword}); err != nil {
		return err
	}
	w.later(w.mosquitto.Close)
	if w.redis, err = devstack.StartRedis(w.path("redis")); err != nil {
		return err
	}
	w.later(w.redis.Close)
	if w.postgres, err = devstack.StartPostgres(ctx, devstack.PostgresConfig{Dir: w.path("postgres"), Logger: w.logFile("postgres")}); err != nil {
		return err
	}
	w.later(w.postgres.Discard)
	if w.db, err = sql.Open("postgres", w.postgres.URL()+"&connect_timeout=2"); err != nil {
		return err
	}
	w.later(w.db.Close)
	if w.relay, err = startRelay(w); err != nil {
		return err
	}
	w.later(w.relay.close)
	if w.processor, err = sandbox.Start(sandbox.Config{WebhookURL: w.relay.url, Disorder: true, Logger: w.logFile("processor")}); err != nil {
		return err
	}
	w.later(w.processor.Close)
	return nil
}

func (w *world) startInstances(ctx context.Context) error {
	for i := range w.Instances {
		started, err := service.Start(ctx, service.Config{
			Name: fmt.Sprintf("instance %d", i), Binary: w.Binary, Dir: w.Dir,
			MQTTURL: w.mosquitto.ServiceURL(), MQTTPassword: servicePassword, RedisURL: w.redis.URL(), DatabaseURL: w.postgres.URL(),
			SigningKeys: w.path("signing.jwks"), TokenKeys: w.path("tokens.jwks"), TokenIssuer: tokenIssuer,
			Settings: []string{
				"MOTORPOOL_CLIENT_RATE=0", "MOTORPOOL_CARD_RATE=0", "MOTORPOOL_AGENCY_SECRETS_KEY=" + w.sealing,
				"MOTORPOOL_STRIPE_KEY=" + w.processor.Key(), "MOTORPOOL_STRIPE_URL=" + w.processor.URL(),
				"MOTORPOOL_STRIPE_WEBHOOK_SECRET=" + w.processor.WebhookSecret(),
			},
			Logger: w.logFile(fmt.Sprintf("instance-%d", i)),
		})
		if err != nil {
			return err
		}
		w.later(func() error {
			_ = started.Kill() // a call of the processor that hangs would hold up a clean stop; all is judged by now
			return started.Close()
		})
		w.instances = append(w.instances, &instance{Instance: started})
	}
	w.relay.deliverTo(w.instances)
	return w.ready(ctx)
}

func (w *world) ready(ctx context.Context) error {
	for _, n := range w.instances {
		if err := service.Eventually(ctx, time.Minute, n.Name+" ready", n.Ready); err != nil {
			return err
		}
	}
	return nil
}

// logFile is the log of a process.
func (w *world) logFile(name string) *slog.Logger {
	log, file, err := service.Output(w.path(name + ".log"))
	if err != nil {
		w.Logger.Warn("no log file", "of", name, "err", err)
		return slog.New(slog.DiscardHandler)
	}
	w.later(file.Close)
	return log
}

// pause waits, unless the context ends first.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
