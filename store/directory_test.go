package store

import (
	"testing"
	"time"

	"motorpool/store/storetest"
)

// The event stream goes by the owner that an instance has cached, so a vehicle's former agency must not stay cached until it expires.
func TestDirectory_MovedVehicleIsKnownAtOtherInstancesSoon(t *testing.T) {
	database, redis := storetest.NewDatabase(t), storetest.StartMiniredis(t).URL()
	twins := twinsAt(t, database, redis)
	id, unit := storetest.AddVehicle(t, twins.directory.postgres.DB, 1)
	twins.directory.known.Add(unit, entry{owner: owner{vehicle: id, agency: 1}, until: time.Now().Add(time.Hour)})
	operator := open(t, database) // elsewhere
	for _, statement := range []string{
		`insert into agencies (id, code, name) values (2, 'TWO', 'Two') on conflict do nothing`, `update vehicles set agency_id = 2`,
	} {
		if _, err := operator.Pool.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	storetest.Eventually(t, "the instance knows the new agency", func() bool {
		o, cached := twins.directory.owner(unit)
		return cached && o.agency == 2
	})
}
