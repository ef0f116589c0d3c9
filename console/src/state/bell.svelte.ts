// Sound and a notification of the desktop for new critical alerts, where a person has asked for them.
import { language, t } from '../texts/index.svelte';
import { alerts } from './alerts.svelte';

const stored = 'bell';

class Bell {
  on = $state(localStorage.getItem(stored) === 'on');

  /** Switches it; the browser asks the person once. */
  async toggle() {
    this.on = !this.on;
    localStorage.setItem(stored, this.on ? 'on' : 'off');
    if (!this.on) return;
    beep(); // so that the person knows it, and the browser allows later ones
    if ('Notification' in window && Notification.permission === 'default') await Notification.requestPermission();
  }

  /** Follows alerts until the returned function is called. */
  follow(): () => void {
    return alerts.watch(async ({ change, alert }) => {
      if (!this.on || alert.severity !== 'critical' || (change !== 'opened' && change !== 'raised')) return;
      beep();
      if (!('Notification' in window) || Notification.permission !== 'granted') return;
      const { subjectOf, textOf } = await import('./alertWords');
      const body = textOf(alert, t(), language.locale);
      const shown = new Notification(subjectOf(alert), { body, tag: alert.id, icon: './icon-192.png' });
      shown.onclick = () => {
        focus();
        location.hash = '#/attention';
      };
    });
  }
}

function beep() {
  try {
    const context = new AudioContext();
    const tone = context.createOscillator();
    const volume = context.createGain();
    tone.frequency.value = 880;
    volume.gain.setValueAtTime(0.2, context.currentTime);
    volume.gain.exponentialRampToValueAtTime(0.001, context.currentTime + 0.6);
    tone.connect(volume).connect(context.destination);
    tone.start();
    tone.stop(context.currentTime + 0.6);
    tone.onended = () => void context.close();
  } catch {
    // A browser without sound shows the notification.
  }
}

export const bell = new Bell();
