package main

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"time"

	"motorpool/simulator/devstack"
)

// Each example rents the nearest car, which the one before has returned. '.ci/npm
// clients/typescript build' builds the one in TypeScript.
func (l *live) rentsAsTheExamplesDo() {
	const script = "../../clients/typescript/dist/examples/rent.js"
	_, err := exec.LookPath("node")
	devstack.Need(l, err)
	_, err = os.Stat(script)
	devstack.Need(l, err)
	for _, example := range [][]string{{"node", script}, {"go", "run", "../../clients/go/rent"}} {
		began := time.Now()
		command := exec.Command(example[0], example[1:]...)
		command.Env = os.Environ()
		for _, name := range []string{"BASE_URL", "CLIENT_TOKEN", "AGENCY_KEY_ID", "AGENCY_SECRET"} {
			command.Env = append(command.Env, name+"="+l.env[name])
		}
		said, err := command.CombinedOutput()
		if err != nil {
			l.Fatalf("%v: %v\n%s", example, err, said)
		}
		ended := regexp.MustCompile(`BK-\d{4}-(\d+) is completed`).FindSubmatch(said)
		if ended == nil {
			l.Fatalf("%v ends without a completed booking:\n%s", example, said)
		}
		var booking rented
		path := "/api/v1/client/bookings/" + string(bytes.TrimLeft(ended[1], "0"))
		if l.ask("GET", path, "CLIENT_TOKEN", "", &booking); booking.Status != "completed" {
			l.Errorf("the booking of %v is %s", example, booking.Status)
		}
		l.Logf("%v rented a car in %v:\n%s", example, time.Since(began), said)
	}
}
