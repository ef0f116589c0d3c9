package main

import (
	"context"
	"encoding/hex"
	"time"

	"motorpool/rental"
	"motorpool/rental/stripe"
	"motorpool/store"
	"motorpool/telematics"
)

// rent opens the commercial side of the world: the key of agency 1's app is printed, cards and bookings are made. It
// returns when what is charged for them is paid.
func (w *world) rent(ctx context.Context, here *place, postgres *store.Postgres, key rental.AgencyKey, processorURL string) error {
	here.env = append(here.env, variable{"AGENCY_KEY_ID", key.ID}, variable{"AGENCY_SECRET", hex.EncodeToString(key.Secret)},
		variable{"SANDBOX_URL", processorURL})
	processor := stripe.New(stripe.Config{Key: w.secrets.payments, BaseURL: processorURL, Logger: w.log})
	defer processor.Close()
	d := &demo{postgres: postgres, log: w.log, wallet: rental.NewWallet(rental.WalletConfig{Cards: postgres, Processor: processor, Log: w.log})}
	ids, err := d.furnish(ctx)
	if err != nil {
		return err
	}
	here.env = append(here.env, ids...)
	return w.settle(ctx, here, d)
}

// settleWithin is how long a start waits for the payments of the demo's bookings.
const settleWithin = 10 * time.Second

// settle waits until they are paid. An installation whose sandbox fails, or has lost its data,
// starts all the same.
func (w *world) settle(ctx context.Context, here *place, d *demo) error {
	within, cancel := context.WithTimeout(ctx, settleWithin)
	defer cancel()
	err := here.await(within, "the demo bookings are paid", d.paid)
	if err != nil && ctx.Err() == nil {
		w.log.Warn("payments of the demo bookings are not settled yet", "bookings", d.begun, "waited", settleWithin)
		return nil
	}
	return err
}

// agencyKey returns a key of agency 1's app: the first that is there and can be opened, else a new one.
func (w *world) agencyKey(ctx context.Context, postgres *store.Postgres) (rental.AgencyKey, error) {
	sealer, err := store.NewSealer(w.secrets.agencies)
	if err != nil {
		return rental.AgencyKey{}, err
	}
	keys := postgres.AgencyKeys(sealer)
	there, err := keys.List(ctx)
	if err != nil {
		return rental.AgencyKey{}, err
	}
	for _, k := range there {
		if k.Agency != firstClient.Agency || k.State != rental.KeyActive {
			continue
		}
		if key, ok, err := keys.AgencyKey(ctx, k.ID); err == nil && ok {
			return key, nil
		}
	}
	key, _, err := keys.Add(ctx, firstClient.Agency, telematics.OperatorAt(demoOperator.Subject))
	return key, err
}

// paid reports whether nothing is owed for the demo's bookings that have begun, or the card's owner has to act first.
func (d *demo) paid(ctx context.Context) bool {
	for _, id := range d.begun {
		there, err := d.postgres.Dossier(ctx, id)
		if err != nil || there.Payment().Status == rental.PaymentPending {
			return false
		}
	}
	return true
}
