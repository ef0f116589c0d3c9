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

// rent creates the demo's cards and bookings, and adds variables for them and for the app of agency 1. It
// returns when the charges are paid.
func (e *environment) rent(ctx context.Context, here *place, postgres *store.Postgres, key rental.AgencyKey, processorURL string) error {
	here.env = append(here.env, variable{"AGENCY_KEY_ID", key.ID}, variable{"AGENCY_SECRET", hex.EncodeToString(key.Secret)},
		variable{"SANDBOX_URL", processorURL})
	processor := stripe.New(stripe.Config{Key: e.PaymentsKey, BaseURL: processorURL, Logger: e.log})
	defer processor.Close()
	d := &demo{postgres: postgres, log: e.log, wallet: rental.NewWallet(rental.WalletConfig{Cards: postgres, Processor: processor, Log: e.log})}
	ids, err := d.create(ctx)
	if err != nil {
		return err
	}
	here.env = append(here.env, ids...)
	return e.settle(ctx, here, d)
}

// settleWithin is how long a start waits for the payments of the demo's bookings.
const settleWithin = 10 * time.Second

// settle waits until they are paid. If the sandbox was made to fail, or lost its file, the environment starts
// nevertheless.
func (e *environment) settle(ctx context.Context, here *place, d *demo) error {
	within, cancel := context.WithTimeout(ctx, settleWithin)
	defer cancel()
	err := here.await(within, "the demo bookings are paid", d.paid)
	if err != nil && ctx.Err() == nil {
		e.log.Warn("payments of the demo bookings are still pending", "bookings", d.begun, "waited", settleWithin)
		return nil
	}
	return err
}

// agencyKey returns the first key of agency 1's app that can be decrypted, else a new one.
func (e *environment) agencyKey(ctx context.Context, postgres *store.Postgres) (rental.AgencyKey, error) {
	sealer, err := store.NewSealer(e.AgencySecrets)
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

// paid reports whether no payment for the demo's bookings that have begun is pending.
func (d *demo) paid(ctx context.Context) bool {
	for _, id := range d.begun {
		there, err := d.postgres.Dossier(ctx, id)
		if err != nil || there.Payment().Status == rental.PaymentPending {
			return false
		}
	}
	return true
}
