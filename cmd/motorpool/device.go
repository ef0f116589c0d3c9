package main

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"motorpool/telematics"
	"motorpool/telematics/ovms"
	"motorpool/telematics/teltonika"
)

// device has the flags with which add and rotate print the settings of units of other protocols.
type device struct {
	Protocol telematics.Protocol `default:"v1" env:"-" placeholder:"NAME" help:"What the units speak; of ovms and teltonika, it prints what to enter into each (default ${default})."`
	Type     string              `name:"vehicle-type" env:"-" placeholder:"TYPE" help:"Vehicle type of an OVMS module, such as NL: then it also prints a PIN, which lock and unlock need (default none: the module is only observed)."`
	Server   string              `env:"-" placeholder:"HOST" help:"Public name of the MQTT broker, as the units reach it; needed with a protocol other than v1."`
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

// printTeltonika prints the table of docs/teltonika.md, filled in.
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
