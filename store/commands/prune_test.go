package commands

import (
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/internal/require"
	"motorpool/store/storetest"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

func TestPrune_RemovesWholeMonthsBeforeTheKeptOnes(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	vehicle, unit := storetest.AddVehicle(t, p.DB, 1)
	thisMonth := time.Now().UTC()
	thisMonth = time.Date(thisMonth.Year(), thisMonth.Month(), 1, 0, 0, 0, 0, time.UTC)
	since := thisMonth.AddDate(0, -6, 0)
	outdated := settleAs(t, p, madeAt(vehicle, since.Add(-time.Hour)), telematics.Succeeded)
	older := settleAs(t, p, madeAt(vehicle, since.AddDate(-1, 0, 0)), telematics.Unknown)
	kept := settleAs(t, p, madeAt(vehicle, since), telematics.Unknown)
	opened := madeAt(vehicle, since.AddDate(-1, 0, 0))
	p.mustClaim(t, opened)
	oldBulk, bulkInUse := newBulk(vehicle), newBulk(vehicle)
	oldBulk.Requested, bulkInUse.Requested = since.AddDate(0, -1, 0), since.AddDate(0, -1, 0)
	for _, b := range []telematics.Bulk{oldBulk, bulkInUse} {
		_, err := p.OpenBulk(t.Context(), b)
		require.NoError(t, err)
	}
	require.NoError(t, p.RefuseBulk(t.Context(), oldBulk.ID,
		[]telematics.BulkItem{{Vehicle: vehicle, Refusal: telematics.NoSuchVehicle(vehicle)}}))
	storetest.Exec(t, p.Pool, `update commands set bulk_id = $1 where id = $2`, bulkInUse.ID, kept.ID)
	moveSettled(t, p)

	would, err := Prune(t.Context(), p.owner(), 6, true)
	if err != nil || len(would.Months) != 2 || would.Months[0].Name != partitionOf(older) ||
		would.Months[1].Name != partitionOf(outdated) ||
		!would.Before.Equal(since) {
		t.Errorf("dry run: %+v, %v; want the two months, not removed", would, err)
	}
	wantAt(t, p, outdated.ID, partitionOf(outdated))
	var pruned [2]Pruned // two machines have the same timer
	var pruning sync.WaitGroup
	for i := range pruned {
		pruning.Go(func() {
			var err error
			if pruned[i], err = Prune(t.Context(), p.owner(), 6, false); err != nil {
				t.Errorf("Prune concurrently: %v", err)
			}
		})
	}
	pruning.Wait()
	if len(pruned[0].Months)+len(pruned[1].Months) < 2 || pruned[0].Bulks+pruned[1].Bulks != 1 {
		t.Errorf("Prune = %+v; want two months and one bulk", pruned)
	}
	wantAt(t, p, outdated.ID, "")
	wantAt(t, p, older.ID, "")
	wantAt(t, p, kept.ID, partitionOf(kept))
	wantAt(t, p, opened.ID, "commands")
	if _, err := p.Bulk(t.Context(), oldBulk.ID); err == nil {
		t.Error("a bulk without commands is still there")
	}
	if b, err := p.Bulk(t.Context(), bulkInUse.ID); err != nil || b.Items[0].Command == nil {
		t.Errorf("Bulk = %+v, %v; want the one whose command is kept", b, err)
	}

	// Units may repeat a result at any time later: a pruned command is not a lost one.
	for _, c := range []telematics.Command{outdated, older} {
		if result := noteUnrecorded(t, p, unrecorded(unit, c.ID)); result.Unknown || result.Noted {
			t.Errorf("a pruned command is stored as lost: %+v", result)
		}
	}
	lost := madeAt(vehicle, since.Add(time.Hour))
	if result := noteUnrecorded(t, p, unrecorded(unit, lost.ID)); !result.Noted {
		t.Errorf("a lost command: %+v, want it stored", result)
	}
	if _, ok, err := p.Settle(t.Context(),
		delivery.Settlement{Command: kept.ID, Unit: unit, State: telematics.Succeeded, At: time.Now()}); err != nil || !ok {
		t.Errorf("a late answer to a kept, unknown command: %v, %v", ok, err)
	}
	if again, err := Prune(t.Context(), p.owner(), 6, false); err != nil || len(again.Months) != 0 || again.Bulks != 0 {
		t.Errorf("Prune repeated = %+v, %v; want nothing removed", again, err)
	}
}

func TestPrune_KeepsAtLeastThreeMonths(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	vehicle, _ := storetest.AddVehicle(t, p.DB, 1)
	c := settleAs(t, p, madeAt(vehicle, time.Now().AddDate(0, 0, -89)), telematics.Unknown)
	moveSettled(t, p)
	if pruned, err := Prune(t.Context(), p.owner(), 0, false); err != nil || len(pruned.Months) != 0 {
		t.Errorf("Prune = %+v, %v; want nothing removed", pruned, err)
	}
	wantAt(t, p, c.ID, partitionOf(c))
}

// The previous version looks up commands only in the table commands.
func TestUnrecordedAnswers_ThePreviousVersionStoresNoMovedCommand(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	vehicle, unit := storetest.AddVehicle(t, p.DB, 1)
	c := settleAs(t, p, madeAt(vehicle, time.Now().AddDate(0, 0, -2)), telematics.Succeeded)
	moveSettled(t, p)
	for id, want := range map[telematics.CommandID]int64{c.ID: 0, uuid.New(): 1} {
		result, err := p.Pool.Exec(`
			insert into unrecorded_answers (unit, command_id, vehicle_id, agency_id, state, reason, detail, received_at)
			select $1, a.id, $2, 1, 'succeeded', '', '', now() from (values ($3::uuid)) as a (id)
			where not exists (select from commands c where c.id = a.id)`, unit, vehicle, id)
		require.NoError(t, err)
		if n, err := result.RowsAffected(); err != nil || n != want {
			t.Errorf("%d rows, %v; want %d", n, err, want)
		}
	}
}
