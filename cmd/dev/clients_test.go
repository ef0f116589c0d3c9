package main

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"testing"
	"time"

	"motorpool/simulator/devstack"
)

// The examples of the clients, as they are in the repository, rent a car of the demo fleet; and so
// does the next one, since the one before has returned it. '.ci/npm clients/typescript build'
// builds the one in TypeScript.
func TestClients_TheirExamplesRentACar(t *testing.T) {
	t.Parallel()
	const script = "../../clients/typescript/dist/examples/rent.js"
	_, err := exec.LookPath("node")
	devstack.Need(t, err)
	_, err = os.Stat(script)
	devstack.Need(t, err)
	l := begin(t, t.TempDir(), onSharedPostgres(t))
	for _, example := range [][]string{{"node", script}, {"go", "run", "../../clients/go/rent"}} {
		began := time.Now()
		command := exec.Command(example[0], example[1:]...)
		command.Env = os.Environ()
		for _, name := range []string{"BASE_URL", "CLIENT_TOKEN", "AGENCY_KEY_ID", "AGENCY_SECRET"} {
			command.Env = append(command.Env, name+"="+l.env[name])
		}
		said, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", example, err, said)
		}
		ended := regexp.MustCompile(`BK-\d{4}-(\d+) is completed`).FindSubmatch(said)
		if ended == nil {
			t.Fatalf("%v ends without a completed booking:\n%s", example, said)
		}
		var booking rented
		path := "/api/v1/client/bookings/" + string(bytes.TrimLeft(ended[1], "0"))
		if l.ask("GET", path, "CLIENT_TOKEN", "", &booking); booking.Status != "completed" {
			t.Errorf("the booking of %v is %s", example, booking.Status)
		}
		t.Logf("%v rented a car in %v:\n%s", example, time.Since(began), said)
	}
}
