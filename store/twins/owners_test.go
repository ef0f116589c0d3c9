package twins

import (
	"testing"
	"time"

	"motorpool/store/storetest"
)

// The event stream uses the owner that an instance has cached, so a vehicle's former agency must
// not stay cached until it expires.
func TestOwners_MovedVehicleIsFoundByOtherInstancesSoon(t *testing.T) {
	database, redis := storetest.NewDatabase(t), storetest.StartMiniredis(t).URL()
	twins := twinsAt(t, database, redis)
	id, unit := storetest.AddVehicle(t, twins.stored.DB, 1)
	twins.owners.cached.Add(unit, cachedOwner{owner: owner{vehicle: id, agency: 1}, until: time.Now().Add(time.Hour)})
	operator := open(t, database) // elsewhere
	for _, statement := range []string{
		`insert into agencies (id, code, name) values (2, 'TWO', 'Two') on conflict do nothing`, `update vehicles set agency_id = 2`,
	} {
		storetest.Exec(t, operator.Pool, statement)
	}
	storetest.Eventually(t, "the instance knows the new agency", func() bool {
		o, cached := twins.owners.find(unit)
		return cached && o.agency == 2
	})
}
