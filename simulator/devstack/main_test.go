package devstack_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"motorpool/simulator/devstack"
)

const (
	// orphanVariable makes the test binary start a server and wait until it is killed, instead of
	// running the tests.
	orphanVariable = "DEVSTACK_TEST_ORPHAN"
	dirVariable    = "DEVSTACK_TEST_DIR"

	// patience limits every wait.
	patience = time.Minute
)

func TestMain(m *testing.M) {
	if server := os.Getenv(orphanVariable); server != "" {
		if err := startAndWait(server, os.Getenv(dirVariable)); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	goleak.VerifyTestMain(m)
}

// startAndWait prints the URL of a server, and does not return while it runs.
func startAndWait(server, dir string) error {
	_, url, err := startServer(server, dir)
	if err != nil {
		return err
	}
	fmt.Println(url)
	time.Sleep(time.Hour)
	return nil
}

var childServers = []string{devstack.MosquittoServer, devstack.RedisServer, devstack.PostgresServer}

// childServer has the methods that all servers in child processes share.
type childServer interface {
	Pause() error
	Resume() error
	Kill() error
	Restart() error
	Close() error
}

// startServer starts a server by its name.
func startServer(server, dir string) (childServer, string, error) {
	switch server {
	case devstack.MosquittoServer:
		s, err := devstack.StartMosquitto(devstack.MosquittoConfig{Dir: dir, ServicePassword: "secret"})
		if err != nil {
			return nil, "", err
		}
		return s, s.ServiceURL(), nil
	case devstack.RedisServer:
		s, err := devstack.StartRedis(dir, nil)
		if err != nil {
			return nil, "", err
		}
		return s, s.URL(), nil
	case devstack.PostgresServer:
		s, err := devstack.StartPostgres(context.Background(), devstack.PostgresConfig{Dir: dir})
		if err != nil {
			return nil, "", err
		}
		return s, s.URL(), nil
	}
	return nil, "", fmt.Errorf("there is no server %q", server)
}
