package mosquitto_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/mosquitto"
	"motorpool/simulator/devstack"
)

func TestPasswords_FileOfMosquittoPasswdIsRead(t *testing.T) {
	t.Parallel()
	devstack.NeedServer(t, devstack.MosquittoServer)
	file := filepath.Join(t.TempDir(), "units.passwd")
	for i, args := range [][]string{{"-c", "-b"}, {"-b"}, {"-H", "sha512", "-b"}} {
		args = append(args, file, "unit-"+string(rune('0'+i)), "password")
		if out, err := exec.Command("mosquitto_passwd", args...).CombinedOutput(); err != nil {
			t.Fatalf("mosquitto_passwd %v: %v %s", args, err, out)
		}
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	passwords, err := mosquitto.ParsePasswords(text)
	require.NoError(t, err)
	assert.EqualSlices(t, passwords.Users(), []string{"unit-0", "unit-1", "unit-2"}, "the users")
	if encoded := passwords.Encode(); string(encoded) != string(text) {
		t.Errorf("encoded as another file: %s", encoded)
	}
}

func TestPasswords_AreSetAndRemovedInPlace(t *testing.T) {
	passwords, err := mosquitto.ParsePasswords([]byte("# units\n\n"))
	require.NoError(t, err)
	for _, user := range []string{"a", "b", "c", "b"} {
		require.NoError(t, passwords.Set(user, "password of "+user))
	}
	passwords.Remove("a")
	passwords.Remove("unknown")
	passwords.Remove("")
	if passwords, err = mosquitto.ParsePasswords(passwords.Encode()); err != nil {
		t.Fatal(err)
	}
	if users := passwords.Users(); !slices.Equal(users, []string{"b", "c"}) || passwords.Has("a") || passwords.Has("") ||
		!passwords.Has("b") {
		t.Errorf("the users are %v, want b and c", users)
	}
	if !strings.HasPrefix(string(passwords.Encode()), "# units\nb:$7$") {
		t.Errorf("the file is %s", passwords.Encode())
	}
	if err := passwords.Set("a:b", "password"); err == nil {
		t.Error("a user name with a colon is accepted")
	}
}

func TestPasswords_ErrorNamesAnInvalidLine(t *testing.T) {
	good, err := mosquitto.PasswordLine("good", "password")
	require.NoError(t, err)
	hash := strings.TrimPrefix(good, "good")
	for name, line := range map[string]string{
		"no colon": "unit", "no hash": "unit:", "plain text": "unit:password", "no name": hash, "space after the name": "unit " + hash,
		"duplicate name": good, "unknown hash": "unit:$9$101$c2FsdA==$aGFzaA==", "truncated": "unit" + hash[:len(hash)-5],
		"no iterations": "unit:$7$x$c2FsdA==$aGFzaA==",
		"no salt":       "unit:$6$$" + hash[strings.LastIndex(hash, "$")+1:], "trailing text": "unit" + hash + "$x",
	} {
		if _, err := mosquitto.ParsePasswords([]byte(good + "\n# comment\n" + line + "\n")); err == nil ||
			!strings.Contains(err.Error(), "line 3") {
			t.Errorf("%s: %q: error %v, want one that names line 3", name, line, err)
		}
	}
}

func TestFindProcess_RefusesOtherProcesses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mosquitto.pid")
	for content, want := range map[string]string{
		"": "want the number", "x": "want the number", "-1": "want the number", "0": "want the number", "1": "want the number",
		"99999999": "does Mosquitto run",
	} {
		require.NoError(t, os.WriteFile(file, []byte(content+"\n"), 0o600))
		if _, err := mosquitto.FindProcess(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("file with %q: error %v, want %q", content, err, want)
		}
	}
	if _, err := mosquitto.FindProcess(file + "-none"); err == nil || !strings.Contains(err.Error(), "pid_file") {
		t.Errorf("missing file: error %v, want one about pid_file", err)
	}
	other := exec.Command("sleep", "60")
	require.NoError(t, other.Start())
	defer func() { _ = other.Process.Kill(); _ = other.Wait() }()
	require.NoError(t, os.WriteFile(file, []byte(strconv.Itoa(other.Process.Pid)), 0o600))
	if _, err := mosquitto.FindProcess(file); err == nil || !strings.Contains(err.Error(), "not mosquitto") {
		t.Errorf("the number of another program: error %v", err)
	}
}
