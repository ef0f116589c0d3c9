package commands

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/broker/brokertest"
	"motorpool/internal/require"
	"motorpool/store/storetest"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

func unrecorded(unit telematics.Unit, id telematics.CommandID) delivery.Unrecorded {
	at := time.Now().UTC().Truncate(time.Millisecond)
	return delivery.Unrecorded{
		Unit: unit, Answer: telematics.Answer{Command: id, State: telematics.Succeeded, At: at.Add(-time.Second)},
		At: at,
	}
}

func noteUnrecorded(t *testing.T, p *instance, u delivery.Unrecorded) delivery.UnrecordedResult {
	t.Helper()
	result, err := p.StoreUnrecorded(t.Context(), u)
	require.NoError(t, err)
	return result
}

func TestStoreUnrecorded_WritesAnAnswerOnceWithItsHistory(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	vehicle, unit := storetest.AddVehicle(t, p.DB, 1)
	lost := unrecorded(unit, uuid.New())
	if result := noteUnrecorded(t, p, lost); !result.Unknown || !result.Noted || result.Vehicle != vehicle {
		t.Errorf("result %+v, want it stored for the vehicle", result)
	}
	if result := noteUnrecorded(t, p, lost); result.Unknown || result.Noted {
		t.Errorf("result of the repeated answer: %+v, want it ignored", result)
	}
	failed := unrecorded(unit, uuid.New())
	failed.Answer.State, failed.Answer.Reason, failed.Answer.At = telematics.Failed, "interrupted", time.Unix(0, 0)
	noteUnrecorded(t, p, failed)
	lines, err := p.Activities(t.Context(), telematics.ActivityQuery{Agency: 1, Vehicle: vehicle, Action: telematics.AnswerUnrecorded})
	if err != nil || len(lines) != 2 {
		t.Fatalf("audit log %+v, %v; want 2 entries", lines, err)
	}
	if line := lines[1]; line.Command != lost.Answer.Command || line.Outcome != telematics.Executed ||
		line.Actor.Role != telematics.System ||
		line.Actor.Subject != "unit:"+string(unit) || line.Details["state"] != "succeeded" ||
		line.Details["answered_at"] != lost.Answer.At.Format("2006-01-02T15:04:05.000Z") {
		t.Errorf("entry %+v, want the unit's success with its time", line)
	}
	if line := lines[0]; line.Outcome != telematics.HasFailed || line.Details["reason"] != "interrupted" ||
		line.Details["answered_at"] != nil {
		t.Errorf("entry %+v, want the failure without a time", line)
	}
}

func TestStoreUnrecorded_IgnoresRecordedCommandsAndUnitsWithoutAVehicle(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	_, unit := storetest.AddVehicle(t, p.DB, 1)
	c := brokertest.NewCommand(1, telematics.Lock)
	_, err := p.Claim(t.Context(), c)
	require.NoError(t, err)
	for name, u := range map[string]delivery.Unrecorded{
		"a command on record":             unrecorded(unit, c.ID),
		"a unit without a vehicle":        unrecorded("unit-9", uuid.New()),
		"another unit's recorded command": unrecorded("unit-9", c.ID),
	} {
		if result := noteUnrecorded(t, p, u); result.Unknown || result.Noted {
			t.Errorf("%s: %+v, want it ignored", name, result)
		}
	}
}

func TestStoreUnrecorded_IsBoundedForEachUnit(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	_, unit := storetest.AddVehicle(t, p.DB, 1)
	_, other := storetest.AddVehicle(t, p.DB, 2)
	var batch []delivery.Unrecorded
	for range delivery.MaxUnrecorded + 4 {
		batch = append(batch, unrecorded(unit, uuid.New()))
	}
	batch = append(batch, unrecorded(other, uuid.New()))
	results, err := p.noteUnrecorded(t.Context(), batch)
	require.NoError(t, err)
	noted := 0
	for _, result := range results {
		if !result.Unknown {
			t.Errorf("result %+v, want the command unknown", result)
		}
		if result.Noted {
			noted++
		}
	}
	if noted != delivery.MaxUnrecorded+1 || !results[len(results)-1].Noted {
		t.Errorf("%d of the batch are stored, want the limit and the other unit's answer", noted)
	}
	if result := noteUnrecorded(t, p, unrecorded(unit, uuid.New())); result.Noted {
		t.Error("stored beyond the limit")
	}
	storetest.Exec(t, p.Pool, `update unrecorded_answers set noted_at = noted_at - interval '1 hour'`)
	if result := noteUnrecorded(t, p, unrecorded(unit, uuid.New())); !result.Noted {
		t.Error("not stored an hour later, when the limit allows it")
	}
}
