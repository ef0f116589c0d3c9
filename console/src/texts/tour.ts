// The texts of the tour, which load with it.

const en = {
  intro:
    'Seven cars of the demo fleet, each with another behaviour. The buttons send commands to simulated cars; ' +
    'watch the result of each command.',
  notHere: 'The tour needs the demo fleet, and this is another fleet. Run `make dev` to see it.',
  refused: (text: string) => `Refused, and nothing was sent: ${text}`,
  steps: [
    {
      title: 'A car answers',
      what: 'Lock car 1. The line below the button begins with the HTTP call; the command is stored before it is sent.',
      learned:
        'Done means: the car has confirmed it. Time runs to the right; the dashed line is how long the caller waits, ' +
        'the solid one is when the command expires.',
    },
    {
      title: 'A slow radio',
      what: 'Car 7 answers after 6 to 9 seconds, as in a bad cellular network. The page stays usable meanwhile.',
      learned: 'Until the car confirms that it has the command, it is sent again, with the same number: the car executes it once.',
    },
    {
      title: 'Offline',
      what: 'Car 5 has no network. Try to unlock it. On its own page the button is off and says why.',
      learned: 'A refusal comes immediately, and nothing waits in the network: the car does not open by itself an hour later.',
    },
    {
      title: 'Driving',
      what: 'Car 6 drives at 50 km/h around the old town. Try to disable driving.',
      learned: 'What fresh telemetry forbids is refused before it reaches the car.',
    },
    {
      title: 'Tries, and fails',
      what: 'Car 10 receives the command, but its door lock is jammed.',
      learned: 'Failed means: the car tried. Send a mechanic.',
    },
    {
      title: 'Not known, then known',
      what: 'Car 8 executes immediately, but its answer takes 20 seconds: longer than any caller waits. ' +
        'After 10 seconds the outcome is not known, and hatched.',
      learned:
        'Not known is neither done nor failed. A late answer still settles it, here and for everyone who looks; until then: ' +
        'ask the car for its state before you send again.',
    },
    {
      title: 'A noisy radio',
      what: 'Car 9 loses every second command, and answers doubly. Lock it twice or three times.',
      learned: 'Two marks in the row of publications: the first was lost. However often it is sent, the car executes it once.',
    },
  ],
  next: 'And then',
  further: [
    ['#/', 'Select several cars in the fleet (key x), and lock them with one command'],
    ['#/activity', 'Read the audit log: it has everything that you tried'],
    ['#/commands?state=unknown', 'See which outcomes are unknown'],
  ] as [string, string][],
};

const de: typeof en = {
  intro:
    'Sieben Autos der Demo-Flotte, und jedes zeigt etwas anderes. Die Knöpfe senden Befehle an simulierte Autos; ' +
    'sehen Sie bei jedem das Ergebnis.',
  notHere: 'Der Rundgang braucht die Demo-Flotte, und dies ist eine andere. Mit `make dev` sehen Sie ihn.',
  refused: (text: string) => `Abgelehnt, und nichts wurde gesendet: ${text}`,
  steps: [
    {
      title: 'Ein Auto antwortet',
      what: 'Verriegeln Sie Auto 1. Die Zeitleiste unter dem Knopf beginnt mit dem HTTP-Aufruf; der Befehl ist gespeichert, ' +
        'bevor er gesendet wird.',
      learned:
        'Ausgeführt heißt: Das Auto hat es bestätigt. Die Zeit läuft nach rechts; die gestrichelte Linie zeigt, ' +
        'wie lange der Aufrufer wartet, die durchgezogene, ab wann der Befehl nicht mehr gilt.',
    },
    {
      title: 'Langsamer Funk',
      what: 'Auto 7 antwortet nach 6 bis 9 Sekunden wie in einem schlechten Mobilfunknetz. Die Seite bleibt währenddessen bedienbar.',
      learned:
        'Bis das Auto bestätigt, dass es den Befehl hat, wird er noch einmal gesendet, mit derselben Nummer: ' +
        'Das Auto führt ihn einmal aus.',
    },
    {
      title: 'Offline',
      what: 'Auto 5 hat kein Netz. Versuchen Sie, es zu entriegeln. Auf seiner eigenen Seite ist der Knopf aus und sagt, warum.',
      learned: 'Die Ablehnung kommt sofort, und nichts wartet im Netz: Das Auto öffnet sich nicht eine Stunde später von selbst.',
    },
    {
      title: 'In Fahrt',
      what: 'Auto 6 fährt mit 50 km/h um die Altstadt. Versuchen Sie, das Fahren zu sperren.',
      learned: 'Was frische Telemetrie verbietet, wird abgelehnt, bevor es das Auto erreicht.',
    },
    {
      title: 'Versucht und gescheitert',
      what: 'Auto 10 empfängt den Befehl, aber sein Türschloss klemmt.',
      learned: 'Gescheitert heißt: Das Auto hat es versucht. Schicken Sie die Werkstatt.',
    },
    {
      title: 'Nicht bekannt, dann bekannt',
      what: 'Auto 8 führt sofort aus, aber seine Antwort braucht 20 Sekunden: länger, als ein Aufrufer wartet. ' +
        'Nach 10 Sekunden ist das Ergebnis nicht bekannt und schraffiert.',
      learned:
        'Nicht bekannt ist weder ausgeführt noch gescheitert. Eine späte Antwort klärt es noch, hier und für alle, die zusehen; ' +
        'bis dahin: Fragen Sie das Auto nach seinem Zustand, bevor Sie noch einmal senden.',
    },
    {
      title: 'Gestörter Funk',
      what: 'Auto 9 verliert jeden zweiten Befehl und antwortet doppelt. Verriegeln Sie es zwei- oder dreimal.',
      learned:
        'Zwei Punkte in der Zeile der Übertragungen: Die erste ging verloren. Wie oft auch gesendet wird, das Auto führt einmal aus.',
    },
  ],
  next: 'Und dann',
  further: [
    ['#/', 'Wählen Sie in der Flotte mehrere Autos (Taste x) und verriegeln Sie alle mit einem Befehl'],
    ['#/activity', 'Lesen Sie das Aktivitätsprotokoll: Alles, was Sie versucht haben, steht darin'],
    ['#/commands?state=unknown', 'Sehen Sie, welche Ergebnisse nicht bekannt sind'],
  ],
};

export const tourTexts = { en, de };
