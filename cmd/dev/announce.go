package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"motorpool/simulator"
)

// announce says how to use the world, to programs first.
func (w *world) announce(here place) error {
	if err := writeFiles(w.Dir, w.fleet.logins(w.secrets.units), here.env); err != nil {
		return err
	}
	w.greet(here.base, here.units)
	return nil
}

func (w *world) greet(base, units string) {
	env := filepath.Join(w.Dir, envFile)
	var fleet strings.Builder
	for _, v := range w.fleet.record.Vehicles {
		what := "not simulated: connect a unit of your own (" + filepath.Join(w.Dir, unitsFile) + ")"
		if profile, ok := simulator.Demo(v.ID); ok && w.fleet.simulates(v.ID) {
			what = profile.Name
		}
		fmt.Fprintf(&fleet, "  %3d  %-24s %s\n", v.ID, v.Brand+" "+v.Model, what)
	}
	fmt.Fprintf(w.out, `
Motorpool is ready after %.1f s.

  API     %s   (browse it: %s/docs)
  MQTT    %s   (units)

  vehicle
%s
Paste into another terminal, in this folder:

  set -a; source %s; set +a
  curl -X POST $BASE_URL/api/v1/admin/vehicles/1/control/lock -H "Authorization: Bearer $ADMIN_TOKEN"
  curl $BASE_URL/api/v1/admin/vehicles/1/status -H "Authorization: Bearer $ADMIN_TOKEN"
  curl "$BASE_URL/api/v1/admin/activity?limit=5" -H "Authorization: Bearer $ADMIN_TOKEN"
  go run ./cmd/motorpool lock 1
  P=/api/v1/client/bookings/$BOOKING_ACTIVE; curl $BASE_URL$P -H "Authorization: Bearer $CLIENT_TOKEN" -H "$(go run ./cmd/motorpool sign GET $P)"

Ctrl-C stops everything; the data stays in %s.

`, time.Since(w.started).Seconds(), base, base, units, fleet.String(), env, w.Dir)
}
