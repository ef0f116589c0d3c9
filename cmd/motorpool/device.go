package main

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"regexp"
	"slices"
	"strings"

	"motorpool/telematics"
	"motorpool/telematics/ovms"
	"motorpool/telematics/teltonika"
)

// device has the flags with which add and rotate print the settings of units of other protocols.
type device struct {
	Protocol telematics.Protocol `default:"v1" env:"-" placeholder:"NAME" help:"${device_protocol}."`
	Type     string              `name:"vehicle-type" env:"-" placeholder:"TYPE" help:"${device_vehicle_type}."`
	Server   string              `env:"-" placeholder:"HOST" help:"${device_server}."`
}

// deviceSettings are the protocols whose units are configured by hand.
var deviceSettings = map[telematics.Protocol]struct {
	serial *regexp.Regexp
	want   string
	print  func(w io.Writer, unit string, d device) error
}{
	ovms.Protocol:      {regexp.MustCompile(`^[A-Za-z0-9_-]{1,20}$`), "a vehicle id of 1 to 20 letters, digits, - or _", printOVMS},
	teltonika.Protocol: {regexp.MustCompile(`^[0-9]{15}$`), "an IMEI of 15 digits", printTeltonika},
}

func (d device) check(units []string) error {
	if d.Protocol.Means(telematics.DefaultProtocol) {
		return nil
	}
	settings, ok := deviceSettings[d.Protocol]
	if !ok {
		return badUsage("--protocol %s: want v1, %s or %s", d.Protocol, ovms.Protocol, teltonika.Protocol)
	}
	if d.Type != "" {
		if d.Protocol != ovms.Protocol {
			return badUsage("--vehicle-type: only with --protocol %s", ovms.Protocol)
		}
		if _, err := (ovms.Dialect{}).Actions(telematics.Installation{ovms.TypeKey: d.Type, ovms.PINKey: newPIN()}); err != nil {
			return badUsage("--vehicle-type: %w", err)
		}
	}
	if d.Server == "" || strings.ContainsAny(d.Server, " :/") {
		return badUsage("--server: want the public name of the MQTT broker, without a port: it is entered into the unit")
	}
	if i := slices.IndexFunc(units, func(u string) bool { return !settings.serial.MatchString(u) }); i >= 0 {
		return badUsage("unit %s: a %s unit is named by %s", units[i], d.Protocol, settings.want)
	}
	return nil
}

// print prints the settings of each unit, after the passwords.
func (d device) print(w io.Writer, units []string) error {
	settings, ok := deviceSettings[d.Protocol]
	if !ok {
		return nil
	}
	for _, unit := range units {
		if err := settings.print(w, unit, d); err != nil {
			return err
		}
	}
	return nil
}

// printTeltonika prints what to enter in the configurator of a unit.
func printTeltonika(w io.Writer, unit string, d device) error {
	elements := strings.Trim(fmt.Sprint(teltonika.Elements()), "[]")
	_, err := fmt.Fprintf(w, `
Enter into unit %[1]s with Teltonika's Configurator:

  System, Data Protocol            Codec JSON
  System, Sleep Mode               Disabled, or GPS sleep
  GPRS, Server Settings
    Domain                         %[2]s
    Port                           8883
    Protocol                       MQTT
    TLS Encryption                 TLS/DTLS; upload the certificate of the broker's authority
  MQTT Settings
    MQTT Client Type               one with custom topics, not AWS Shadow
    Client ID                      %[1]s
    Username                       %[1]s
    Password                       the one above, of this unit
    Data topic                     %[3]s
    Command topic                  %[4]s
    Quality of service             1
    Keep Alive                     60
  Data Acquisition, On Stop
    Min Period                     240
    Send Period                    60
  Data Acquisition, On Moving
    Min Period                     30
    Send Period                    10
  I/O, priority Low, those that the vehicle has
    AVL ids                        %[5]s

Then set "protocol": "teltonika" and "installation" of its vehicle in the fleet file: docs/teltonika.md.
`, unit, d.Server, teltonika.DataTopic(telematics.Unit(unit)), teltonika.CommandTopic(telematics.Unit(unit)), elements)
	return err
}

// newPIN draws a PIN of six digits, the first not 0.
func newPIN() string {
	const least, most = 100_000, 999_999
	n, err := rand.Int(rand.Reader, big.NewInt(most-least+1))
	if err != nil {
		panic(err) // never, see crypto/rand
	}
	return fmt.Sprint(least + n.Int64())
}

// printOVMS prints what to enter into the shell of a module.
func printOVMS(w io.Writer, unit string, d device) error {
	lines := []string{
		"config set vehicle id " + unit,
		"config set vehicle timezone UTC0",
	}
	installation := telematics.Installation{}
	if d.Type != "" {
		installation[ovms.TypeKey], installation[ovms.PINKey] = d.Type, newPIN()
		lines = append(lines, "config set auto vehicle.type "+d.Type, "config set password pin "+installation[ovms.PINKey])
	}
	record, err := json.Marshal(installation)
	if err != nil {
		return err
	}
	lines = append(lines,
		"config set server.v3 server "+d.Server,
		"config set server.v3 port 8883",
		"config set server.v3 tls yes",
		"config set server.v3 user "+unit,
		"config set password server.v3 PASSWORD",
		"config set server.v3 updatetime.keepalive 60",
		"config set server.v3 updatetime.idle 300",
		"config set server.v3 events.legacy_topic no",
		"config set server.v3 metrics.include "+strings.Join(ovms.Metrics(), ","),
		"config set auto server.v3 yes",
		"server v3 start",
	)
	_, err = fmt.Fprintf(w, `
Once Mosquitto has read the password above, enter into the shell of module %s (firmware 3.3.006 or newer), with it for PASSWORD:

  %s

Then set "protocol": "ovms" and "installation": %s of its vehicle in the fleet file: docs/ovms.md.
`, unit, strings.Join(lines, "\n  "), record)
	return err
}

// ovmsRefusal explains why the password of a running module is not replaced.
const ovmsRefusal = "unit %[1]s is an OVMS module: once a login is refused it never connects again, " +
	"and a password has no second one that is valid meanwhile. " + `Nothing was changed. Either
- give it a certificate of your issuer, which it can have in addition to the password: docs/units.md
- or stop it first. In the module's shell, and not over MQTT: server v3 stop
  Then: motorpool unit rotate --protocol ovms --stopped %[1]s`

// printNewPassword prints the shell commands that give a stopped module its new password.
func printNewPassword(w io.Writer, unit string) error {
	_, err := fmt.Fprintf(w, `
Once Mosquitto has read the password above, enter into the shell of module %s, with it for PASSWORD:

  config set password server.v3 PASSWORD
  server v3 start
`, unit)
	return err
}
