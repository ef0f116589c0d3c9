package main

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/telematics"
)

func TestAVehicleLocksOnceAndRepeatsItsAnswer(t *testing.T) {
	key, err := telematics.NewSigningKey()
	if err != nil {
		t.Fatal(err)
	}
	c := &cars{keys: key.Keyring()}
	by := &heardBy{}
	message := func(unit telematics.Unit, budget time.Duration) []byte {
		now := time.Now()
		signed, err := key.Sign((&telematics.Command{
			ID: uuid.New(), Unit: unit, Action: telematics.Lock, Lane: telematics.Lock.Lane(), Seq: 1, Requested: now, Deadline: now.Add(budget),
		}).Claims())
		if err != nil {
			t.Fatal(err)
		}
		return signed
	}
	order := message("unit-1", telematics.DefaultBudget)
	command, first, _ := c.obey(by, "unit-1", order)
	_, again, repeated := c.obey(by, "unit-1", order)
	if len(first) == 0 || string(first) != string(again) || by.started != 1 || by.repeated != 1 || !repeated || command != by.last {
		t.Errorf("answered %s and %s, started %d, repeated %d", first, again, by.started, by.repeated)
	}
	forged := append([]byte{}, message("unit-1", telematics.DefaultBudget)...)
	forged[len(forged)-3] ^= 1
	for what, wrong := range map[string][]byte{
		"of another unit": message("unit-2", telematics.DefaultBudget), "expired": message("unit-1", -time.Minute), "forged": forged,
	} {
		if _, answer, _ := c.obey(by, "unit-1", wrong); answer != nil {
			t.Errorf("%s: answered %s", what, answer)
		}
	}
	if by.started != 1 || by.refused != 3 {
		t.Errorf("started %d, refused %d", by.started, by.refused)
	}
}

func TestSlowVehiclesAnswerWithinTheirBounds(t *testing.T) {
	for range 10_000 {
		if d := cellular(5 * time.Second).takes(); d < 2*time.Second || d > 10*time.Second {
			t.Fatal(d)
		}
	}
}

// A vehicle does one command at a time.
func TestNoTwoWorkersTakeTheSameVehicle(t *testing.T) {
	const workers, vehicles = 7, 40
	taken := map[int]int{}
	for w := range workers {
		turn := newTurn(w, workers, vehicles)
		for range 3 * vehicles {
			v := turn.next()
			if by, ok := taken[v]; ok && by != w || v < 1 || v > vehicles {
				t.Fatalf("vehicle %d is of workers %d and %d", v, by, w)
			}
			taken[v] = w
		}
	}
	if len(taken) != vehicles {
		t.Errorf("%d of %d vehicles were taken", len(taken), vehicles)
	}
}
