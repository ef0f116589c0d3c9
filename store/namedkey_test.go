package store

import (
	"testing"
	"time"

	"motorpool/broker/brokertest"
	"motorpool/rental"
	"motorpool/rental/rentaltest"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

// What a command has named, a card has not, and the other way round.
func TestAKeyOfACardIsNoKeyOfACommand(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	vehicle, _ := storetest.Vehicles(t, p.DB)()
	c := newCardholder(t, p)
	ofCard := rentaltest.NewKey(c.client.Subject)
	if _, err := p.AddMethod(t.Context(), rental.Addition{Client: c.client.ID, Card: rentaltest.NewCard(), Key: ofCard, Line: c.line(rental.MethodAdd), Now: time.Now()}); err != nil {
		t.Fatal(err)
	}
	ofDecline := rentaltest.NewKey(c.client.Subject)
	if err := p.KeepDecline(t.Context(), *ofDecline, rental.Decline{Code: "lost_card"}.Refusal()); err != nil {
		t.Fatal(err)
	}
	for _, used := range []*telematics.IdempotencyKey{ofCard, ofDecline} {
		command := brokertest.NewCommand(vehicle, telematics.Lock)
		command.Key = new(*used)
		command.Key.Fingerprint[0]++
		if claim, err := p.Claim(t.Context(), command); err != nil || !claim.KeyTaken {
			t.Fatalf("Claim = %+v, %v", claim, err)
		}
		made, found, err := p.Made(t.Context(), *command.Key)
		if err != nil || !found || made.Fingerprint == command.Key.Fingerprint || made.Command.ID != telematics.NoCommand {
			t.Errorf("Made = %+v, %v, %v", made, found, err)
		}
	}
	command := brokertest.NewCommand(vehicle, telematics.Lock)
	command.Key = rentaltest.NewKey(c.client.Subject)
	if claim, err := p.Claim(t.Context(), command); err != nil || !claim.Taken() {
		t.Fatalf("Claim = %+v, %v", claim, err)
	}
	ofOther := *command.Key
	ofOther.Fingerprint[0]++
	_, err := p.AddMethod(t.Context(), rental.Addition{Client: c.client.ID, Card: rentaltest.NewCard(), Key: &ofOther, Line: c.line(rental.MethodAdd), Now: time.Now()})
	var refusal *telematics.Error
	if !asRefusal(err, &refusal) || refusal.Code != telematics.IdempotencyMismatch {
		t.Errorf("AddMethod = %v", err)
	}
	if methods, err := p.Methods(t.Context(), c.client.ID); err != nil || len(methods) != 1 {
		t.Errorf("%d methods, %v", len(methods), err)
	}
}

func TestAKeyOfACardIsForgottenInTime(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	storetest.AddVehicle(t, p.DB, 1)
	c := newCardholder(t, p)
	key := rentaltest.NewKey(c.client.Subject)
	addition := func() rental.Addition {
		return rental.Addition{Client: c.client.ID, Card: rentaltest.NewCard(), Key: key, Line: c.line(rental.MethodAdd), Now: time.Now()}
	}
	first, err := p.AddMethod(t.Context(), addition())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Pool.Exec(`update idempotency_keys set made_at = made_at - interval '24 hours' where key = $1`, key.Key); err != nil {
		t.Fatal(err)
	}
	if _, found, err := p.AddedUnder(t.Context(), c.client.ID, *key); found || err != nil {
		t.Errorf("AddedUnder = %v, %v", found, err)
	}
	second, err := p.AddMethod(t.Context(), addition())
	if err != nil || second.Replayed || second.Method.ID == first.Method.ID {
		t.Errorf("AddMethod = %+v, %v", second, err)
	}
	if _, err := p.Pool.Exec(`update idempotency_keys set made_at = made_at - interval '24 hours'`); err != nil {
		t.Fatal(err)
	}
	if more, err := p.ForgetKeys(t.Context(), 10); more || err != nil {
		t.Errorf("ForgetKeys = %v, %v", more, err)
	}
	var left int
	if err := p.Pool.Get(&left, `select count(*) from idempotency_keys`); err != nil || left > 0 {
		t.Errorf("%d keys are left, %v", left, err)
	}
}
