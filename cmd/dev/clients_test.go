package main

import (
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
		ended := regexp.MustCompile(`(BK-\S+) is completed`).FindSubmatch(said)
		if ended == nil {
			l.Fatalf("%v ends without a completed booking:\n%s", example, said)
		}
		var newest []rented
		l.ask("GET", "/api/v1/client/bookings?limit=1", "CLIENT_TOKEN", "", &newest)
		if len(newest) != 1 || newest[0].Reference != string(ended[1]) || newest[0].Status != "completed" {
			l.Errorf("the newest booking after %v is %+v, want %s, completed", example, newest, ended[1])
		}
		l.Logf("%v rented a car in %v:\n%s", example, time.Since(began), said)
	}
}
