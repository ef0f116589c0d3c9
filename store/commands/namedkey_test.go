package commands

import (
	"errors"
	"testing"
	"time"

	"motorpool/broker/brokertest"
	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/rental/rentaltest"
	"motorpool/store/rentals"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

// A key that was used for a command cannot be used for a card, and the reverse.
func TestKey_OfACardIsTakenForCommandsAndTheReverse(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	vehicle, _ := storetest.Vehicles(t, p.DB)()
	cards := rentals.Cards{DB: p.DB}
	client, err := cards.Client(t.Context(), 1, "client-1")
	require.NoError(t, err)
	line := telematics.Activity{
		At: time.Now(), Action: rental.MethodAdd, Agency: 1,
		Actor: telematics.Actor{Subject: client.Subject, Role: telematics.Client, Agency: 1},
	}
	ofCard := rentaltest.NewKey(client.Subject)
	_, err = cards.AddMethod(t.Context(),
		rental.Addition{Client: client.ID, Card: rentaltest.NewCard(), Key: ofCard, Activity: line, Now: time.Now()})
	require.NoError(t, err)
	ofDecline := rentaltest.NewKey(client.Subject)
	require.NoError(t, cards.KeepDecline(t.Context(), *ofDecline, rental.Decline{Code: "lost_card"}.Refusal()))
	for _, used := range []*telematics.IdempotencyKey{ofCard, ofDecline} {
		command := brokertest.NewCommand(vehicle, telematics.Lock)
		command.Key = new(*used)
		command.Key.Fingerprint[0]++
		if claim, err := p.Claim(t.Context(), command); err != nil || !claim.KeyTaken {
			t.Fatalf("Claim with a card's key = %+v, %v; want the key taken", claim, err)
		}
		made, found, err := p.FindByKey(t.Context(), *command.Key)
		if err != nil || !found || made.Fingerprint == command.Key.Fingerprint || made.Command.ID != telematics.NoCommand {
			t.Errorf("FindByKey = %+v, %v, %v; want the fingerprint of the card", made, found, err)
		}
	}
	command := brokertest.NewCommand(vehicle, telematics.Lock)
	command.Key = rentaltest.NewKey(client.Subject)
	p.mustClaim(t, command)
	ofOther := *command.Key
	ofOther.Fingerprint[0]++
	_, err = cards.AddMethod(
		t.Context(),
		rental.Addition{Client: client.ID, Card: rentaltest.NewCard(), Key: &ofOther, Activity: line, Now: time.Now()},
	)
	var refusal *telematics.Error
	if !errors.As(err, &refusal) || refusal.Code != telematics.IdempotencyMismatch {
		t.Errorf("AddMethod with a command's key = %v, want IdempotencyMismatch", err)
	}
	if methods, err := cards.Methods(t.Context(), client.ID); err != nil || len(methods) != 1 {
		t.Errorf("%d methods, %v; want 1", len(methods), err)
	}
}
