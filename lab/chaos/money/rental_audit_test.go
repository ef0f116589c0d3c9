package money

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/rental"
	"motorpool/simulator"
	"motorpool/simulator/sandbox"
	"motorpool/telematics"
)

// at returns a time of the rental that goodRental describes.
func at(seconds int) time.Time { return until.Add(time.Duration(seconds) * time.Second) }

// goodRental is a rental of 61 s that was charged 44.00 at its start, of which 0.74 were kept, and
// a start that failed.
func goodRental() RentalEvidence {
	open, closing := uuid.New(), uuid.New()
	entry := func(seconds int, of rental.ChargeKind) Entry {
		return Entry{
			At: at(seconds), Booking: 1, Action: rental.ChargeActivity(of), Outcome: telematics.Executed, Number: 1, State: rental.Paid,
		}
	}
	charge := func(id, intent string, of rental.ChargeKind, amount rental.Minor) ChargeRow {
		return ChargeRow{
			ID: id, Booking: 1, Kind: of, Number: 1, State: rental.Paid, Amount: amount, Settled: amount, Intent: intent,
		}
	}
	event := func(kind simulator.Kind, id telematics.CommandID, a telematics.Action, s int) simulator.Event {
		return simulator.Event{Kind: kind, Unit: "car-1", Command: id, Action: a, True: at(s), Status: telematics.Succeeded}
	}
	start, end := uuid.New(), uuid.New()
	e := RentalEvidence{
		ReadAt: at(1000),
		Rents:  []Rent{{Booking: 1, Answered: []Answered{{rental.StartRental, at(6)}, {rental.EndRental, at(70)}}}},
		Rentals: []RentalRow{
			{ID: 1, State: rental.Completed, Vehicle: 1, Unit: "car-1", Rental: 74, Start: new(at(5)), End: new(at(66))},
			{ID: 2, State: rental.Cancelled, Vehicle: 1, Unit: "car-1", Rental: 4400},
		},
		Transitions: []TransitionRow{
			{ID: start, Booking: 1, Kind: rental.StartRental, State: rental.TransitionDone, Requested: at(0), Ended: new(at(6))},
			{ID: end, Booking: 1, Kind: rental.EndRental, State: rental.TransitionDone, Requested: at(66), Ended: new(at(69))},
			{ID: uuid.New(), Booking: 2, Kind: rental.StartRental, State: rental.TransitionFailed, Requested: at(80), Ended: new(at(82))},
		},
		Orders: []OrderRow{{"transition-" + start.String() + "-command-0", open}, {"transition-" + end.String() + "-command-0", closing}},
		Events: []simulator.Event{
			event(simulator.CommandStarted, open, telematics.UnlockAndEnableDriving, 4),
			event(simulator.CommandEnded, open, telematics.UnlockAndEnableDriving, 5),
			event(simulator.CommandStarted, closing, telematics.LockAndDisableDriving, 67),
			event(simulator.CommandEnded, closing, telematics.LockAndDisableDriving, 68),
		},
		Evidence: Evidence{
			Record: Record{
				Charges: []ChargeRow{
					charge("start", "pi_start", rental.StartCharge, 4400), charge("back", "re_back", rental.RefundCharge, 4326),
				},
				Entries: []Entry{entry(2, rental.StartCharge), entry(71, rental.RefundCharge)},
			},
			Ledger: []sandbox.Movement{{
				Intent: "pi_start", Charge: "start", Status: "succeeded", Amount: 4400, Captured: 4400, Approved: 1, Refunded: 4326,
				Refunds: []sandbox.Giveback{{Refund: "re_back", Charge: "back", Amount: 4326, Status: "succeeded"}},
			}},
		},
	}
	e.Charges[1].Refunds = "start"
	return e
}

func TestCheckRentals_GoodRoundHasNoViolation(t *testing.T) {
	report := CheckRentals(goodRental())
	if len(report.Violations) > 0 {
		t.Errorf("violations %q, want none", report.Violations)
	}
	if unchecked := report.Unchecked(); !slices.Equal(unchecked, []string{lawDeposits}) {
		t.Errorf("unchecked laws %q, want only %q", unchecked, lawDeposits)
	}
}

func TestCheckRentals_FindsViolations(t *testing.T) {
	for name, test := range map[string]struct {
		law   string
		spoil func(*RentalEvidence)
	}{
		"charged twice": {lawPrice, func(e *RentalEvidence) {
			e.Charges = append(e.Charges, ChargeRow{ID: "again", Booking: 1, Kind: rental.EndCharge, State: rental.Paid})
			e.Ledger = append(e.Ledger, sandbox.Movement{Charge: "again", Captured: 74, Approved: 1})
		}},
		"not refunded":           {lawPrice, func(e *RentalEvidence) { e.Charges = e.Charges[:1] }},
		"refunded twice":         {lawPrice, func(e *RentalEvidence) { e.Charges = append(e.Charges, e.Charges[1]) }},
		"charged, never started": {lawPrice, func(e *RentalEvidence) { e.Rentals[0].State = rental.Cancelled }},
		"held after the end": {lawPrice, func(e *RentalEvidence) {
			e.Charges = append(e.Charges, ChargeRow{ID: "deposit", Booking: 1, Kind: rental.DepositCharge, State: rental.Authorized})
			e.Ledger = append(e.Ledger, sandbox.Movement{Charge: "deposit", Held: 200, Approved: 1})
		}},
		"costs more than its time": {lawPrice, func(e *RentalEvidence) { e.Rentals[0].Rental = 200 }},
		"opened before it was paid": {lawDriven, func(e *RentalEvidence) {
			e.Entries[0].At = at(5)
		}},
		"opened before the request": {lawDriven, func(e *RentalEvidence) { e.Events[0].True = at(-1) }},
		"opened after the end": {lawDriven, func(e *RentalEvidence) {
			e.Events = append(e.Events, simulator.Event{
				Kind: simulator.CommandStarted, Unit: "car-1", Action: telematics.Unlock, True: at(70),
			})
		}},
		"opened by a start that is not paid": {lawDriven, func(e *RentalEvidence) { e.Events[0].True = at(81) }},
		"two rentals": {lawOneUser, func(e *RentalEvidence) {
			other := e.Rentals[0]
			other.ID, other.Start = 3, new(at(68)) // the first has ended at 69
			e.Rentals = append(e.Rentals, other)
		}},
		"ended without the car": {lawLocked, func(e *RentalEvidence) { e.Events[3].True = at(70) }},
		"ended, lock failed":    {lawLocked, func(e *RentalEvidence) { e.Events[3].Status = telematics.Failed }},
		"ended only locked":     {lawLocked, func(e *RentalEvidence) { e.Events[3].Action = telematics.Lock }},
		"unlocked meanwhile": {lawLocked, func(e *RentalEvidence) {
			e.Events = append(e.Events, simulator.Event{
				Kind: simulator.CommandEnded, Unit: "car-1", Action: telematics.Unlock, True: at(69), Status: telematics.Succeeded,
			})
		}},
		"ended by no transition": {lawLocked, func(e *RentalEvidence) { e.Transitions[1].Kind = rental.PauseRental }},
		"still open": {lawInTime, func(e *RentalEvidence) {
			e.Transitions[2].State, e.Transitions[2].Ended = rental.TransitionOpen, nil
		}},
		"executed twice":         {lawOrdered, func(e *RentalEvidence) { e.Events = append(e.Events, e.Events[0]) }},
		"ordered by no one":      {lawOrdered, func(e *RentalEvidence) { e.Orders = e.Orders[:1] }},
		"one command, two steps": {lawOrdered, func(e *RentalEvidence) { e.Orders[1].Command = e.Orders[0].Command }},
		"answered, and not on record": {lawAnswered, func(e *RentalEvidence) {
			e.Rents[0].Answered = append(e.Rents[0].Answered, Answered{rental.PauseRental, at(40)})
		}},
		"the processor has more": {lawCharged, func(e *RentalEvidence) { e.Ledger[0].Captured++ }},
	} {
		t.Run(name, func(t *testing.T) {
			e := goodRental()
			test.spoil(&e)
			report := CheckRentals(e)
			if len(report.Of(test.law)) == 0 {
				t.Errorf("the violation was not found, only %q", report.Violations)
			}
		})
	}
}

func TestCheckRentals_WhatStaffSeeIsNoViolation(t *testing.T) {
	for name, change := range map[string]func(*RentalEvidence){
		"ended by override": func(e *RentalEvidence) {
			e.Transitions[1].Override, e.Events = "towed", e.Events[:2]
		},
		"open, and shown to staff": func(e *RentalEvidence) {
			e.Transitions[2].State, e.Transitions[2].Ended, e.Transitions[2].NeedsStaff = rental.TransitionOpen, nil, true
		},
	} {
		e := goodRental()
		if change(&e); len(CheckRentals(e).Violations) > 0 {
			t.Errorf("%s: violations %q, want none", name, CheckRentals(e).Violations)
		}
	}
}
