package main

import (
	_ "embed"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"motorpool/rental"
	"motorpool/simulator"
	"motorpool/telematics/ovms"
	"motorpool/telematics/teltonika"
)

// announce writes the files that describe the environment, then prints how to use it.
func (e *environment) announce(here endpoints) error {
	if err := writeFiles(e.flags.Dir, e.fleet.logins(e.UnitPassword), here.env); err != nil {
		return err
	}
	e.printUsage(here.base, here.units, here.value("CONSOLE_URL"))
	return nil
}

func (e *environment) printUsage(base, units, signIn string) {
	env := filepath.Join(e.flags.Dir, envFile)
	var fleet strings.Builder
	for _, v := range e.fleet.record.Vehicles {
		what := "not simulated: connect a unit yourself (" + filepath.Join(e.flags.Dir, unitsFile) + ")"
		if profile, ok := simulator.Demo(v.ID); ok && e.fleet.simulates(v.ID) {
			what = profile.Name
		} else if v.Protocol == ovms.Protocol && e.fleet.simulates(v.ID) {
			what = "electric car with an OVMS module"
		} else if v.Protocol == teltonika.Protocol && e.fleet.simulates(v.ID) {
			what = "van with a Teltonika unit"
		}
		fmt.Fprintf(&fleet, "  %3d  %-24s %s\n", v.ID, v.Brand+" "+v.Model, what)
	}
	fmt.Fprintf(e.out, `
Motorpool is ready after %.1f s.

  Console %s
          This link signs in the administrator of all agencies, any number of times while this runs; that of one,
          an operator or a viewer: CONSOLE_URL_AGENCY, CONSOLE_URL_OPERATOR, CONSOLE_URL_VIEWER in %s.
          Or open %s, and sign in as admin, agency-1-admin, operator or viewer with the password %s
  API     %s/docs   (browse and call it; its address is %s)
  MQTT    %s   (units)

  vehicle
%s
Paste into another terminal, in this folder:

  set -a; source %s; set +a
  curl -X POST $BASE_URL/api/v1/admin/vehicles/1/control/lock -H "Authorization: Bearer $ADMIN_TOKEN"
  curl $BASE_URL/api/v1/admin/vehicles/1/status -H "Authorization: Bearer $ADMIN_TOKEN"
  curl "$BASE_URL/api/v1/admin/activity?limit=5" -H "Authorization: Bearer $ADMIN_TOKEN"
  go run ./cmd/motorpool lock 1
  P=/api/v1/client/bookings/$BOOKING_ACTIVE; curl $BASE_URL$P -H "Authorization: Bearer $CLIENT_TOKEN" \
    -H "$(go run ./cmd/motorpool sign GET $P)"

Ctrl-C stops everything; the data stays in %s.

`, time.Since(e.started).Seconds(), signIn, env, base, e.ConsolePassword, base, base, units, fleet.String(), env, e.flags.Dir)
}

//go:embed docs.js
var docsInterceptor string

// docsScript returns a script with which the page /docs signs clients' calls by the demo app's key.
func docsScript(key rental.AgencyKey) string {
	return fmt.Sprintf("const AGENCY_KEY_ID = %q, AGENCY_SECRET = %q;\n%s", key.ID, hex.EncodeToString(key.Secret), docsInterceptor)
}
