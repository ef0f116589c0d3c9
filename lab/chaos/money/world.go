package money

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq" // the audit does not read through the store under test

	"motorpool/httpapi/auth"
	"motorpool/lab/chaos/network"
	"motorpool/lab/chaos/runner"
	"motorpool/lab/world"
	"motorpool/rental"
	"motorpool/simulator/sandbox"
	"motorpool/telematics"
)

// round is one run of the test, and its world.
type round struct {
	runner.Config
	Plan
	*world.World
	Evidence
	struck    runner.Log[string]        // names of faults
	forgotten runner.Log[OperationKind] // confirmed operations that the record forgot

	admin      string // token
	agencyKeys map[telematics.AgencyID]rental.AgencyKey
	processor  *sandbox.Server
	relay      *relay
	db         *sqlx.DB // does not use the service's connections

	faults     []fault
	units      []telematics.Unit // that may connect
	clients    []*client
	bookings   []booking
	operations [][]*Operation // of each booking
	healed     atomic.Bool
	resumed    time.Time // when an instance that was frozen ran again last

	standby *network.Standby // of a round of lost commits
	lost    chan struct{}    // closed when it loses them

	loaded, settled time.Duration // how long that took
}

func (r *round) startServers(ctx context.Context) error {
	err := r.StartServers(ctx, world.ServersConfig{Units: r.units})
	if err != nil {
		return err
	}
	if r.db, err = sqlx.Open("postgres", r.Postgres.URL()+"&connect_timeout=2"); err != nil {
		return err
	}
	r.OnClose(r.db.Close)
	r.relay = &relay{backedOff: map[*world.Instance]time.Time{}}
	if r.processor, err = sandbox.Start(sandbox.Config{
		Key: r.PaymentsKey, WebhookSecret: r.WebhookSecret, WebhookURL: "http://relay", Poster: r.relay, Disorder: true,
		Logger: r.LogFile("processor"),
	}); err != nil {
		return err
	}
	r.OnClose(r.processor.Close)
	r.admin, err = r.Token(telematics.Actor{Subject: "chaos", Role: telematics.Admin}, auth.ScopeAllAgencies)
	return err
}

func (r *round) startInstances(ctx context.Context) error {
	address := r.Postgres.URL()
	if r.LostCommits {
		var err error
		if r.standby, err = network.StartStandby(ctx, r.World, false); err != nil {
			return err
		}
		address = r.standby.URL
	}
	for range r.Instances {
		started, err := r.StartInstance(ctx, world.InstanceConfig{DatabaseURL: address, Settings: []string{
			"MOTORPOOL_CLIENT_RATE=0", "MOTORPOOL_CARD_RATE=0",
			"MOTORPOOL_STRIPE_KEY=" + r.PaymentsKey, "MOTORPOOL_STRIPE_URL=" + r.processor.URL(),
			"MOTORPOOL_STRIPE_WEBHOOK_SECRET=" + r.WebhookSecret,
		}})
		if err != nil {
			return err
		}
		r.OnClose(func() error {
			_ = started.Kill() // a call to the processor that hangs would delay a clean stop
			return nil
		})
	}
	r.relay.deliverTo(r.Running)
	return r.Ready(ctx)
}
