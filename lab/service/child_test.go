package service_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/gob"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"motorpool/internal/app"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

// childConfig is the variable with which these tests start this binary as a service that can be
// killed.
const childConfig = "MOTORPOOL_TEST_SERVE"

func TestMain(m *testing.M) {
	text := os.Getenv(childConfig)
	if text == "" {
		code := m.Run()
		storetest.Stop()
		os.Exit(code)
	}
	if err := serveChild(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serveChild serves until its standard input is closed.
func serveChild(text string) error {
	var config app.Config
	if err := gob.NewDecoder(base64.NewDecoder(base64.StdEncoding, strings.NewReader(text))).Decode(&config); err != nil {
		return err
	}
	listeners, err := config.Listen()
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	fmt.Println(listeners.Public.Addr(), listeners.Internal.Addr())
	return app.Serve(ctx, config, listeners, slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
}

// serveChild runs an instance by a command that starts this binary, and waits until it is ready.
// Its stop kills it.
func (s *stack) serveChild(config app.Config, child *exec.Cmd) *instance {
	s.Helper()
	var text strings.Builder
	encoder := base64.NewEncoder(base64.StdEncoding, &text)
	s.must(gob.NewEncoder(encoder).Encode(config)) // JSON would hide its secrets
	s.must(encoder.Close())
	child.Env = append(os.Environ(), childConfig+"="+text.String())
	child.Stderr = s.Output()
	in, err := child.StdinPipe() // the child ends with this pipe if the tests are killed
	s.must(err)
	out, err := child.StdoutPipe()
	s.must(err)
	s.must(child.Start())
	dead := false
	kill := func() {
		if !dead {
			dead = true
			_ = child.Process.Kill()
			_ = child.Wait() // returns that it was killed
			_ = in.Close()
		}
	}
	s.Cleanup(kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	s.must(err)
	i := &instance{
		stack: s, budget: config.Budget, admin: s.token(telematics.Actor{Subject: "admin-7", Role: telematics.Admin}),
		stop: kill,
	}
	_, err = fmt.Sscan(line, &i.base, &i.internal)
	s.must(err)
	i.base, i.internal = "http://"+i.base, "http://"+i.internal
	s.eventually(30*time.Second, "ready", func() bool { status, _ := i.readiness(); return status == 200 })
	return i
}
