package app

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"motorpool/rental"
	"motorpool/store"
)

// money is the commercial side: who holds cards and moves money, and who sees to it that what is due is charged.
type money struct {
	processor
	live      bool // real money is moved
	wallet    *rental.Wallet
	collector *rental.Collector
	postgres  *store.Postgres
}

func (c Config) newMoney(postgres *store.Postgres, registry prometheus.Registerer, log *slog.Logger) (*money, error) {
	m := &money{postgres: postgres}
	var err error
	if m.processor, m.live, err = c.processor(log); err != nil {
		return nil, err
	}
	m.wallet = rental.NewWallet(rental.WalletConfig{Cards: postgres, Processor: m.processor, Log: log})
	m.collector = rental.NewCollector(rental.CollectorConfig{
		Ledger: postgres, Notices: postgres, Cards: postgres, Processor: m.processor, Logger: log, Metrics: registry,
	})
	if !c.hasProcessor() {
		log.Info("no payment processor is set up: no card can be added, and no charge is made", "setting", "--stripe-key")
	}
	return m, nil
}

// run carries out what is due until the context ends. Without a processor charges stay as they are.
func (m *money) run(ctx context.Context) error {
	if _, none := m.processor.(noProcessor); none {
		<-ctx.Done()
		return nil
	}
	return m.collector.Run(ctx)
}

// Keep writes down what the processor has told.
func (m *money) Keep(ctx context.Context, n rental.Notice) error { return m.postgres.Keep(ctx, n) }
