/** Answers that grow at the same time in one process, many times over. */
const MAX_NOTED = 2_000;

/** Which turn writes which message, as far as this process writes them. */
export interface Running {
  /** Both as the core knows them. */
  note(messageId: string, turnId: string): void;
  find(messageId: string): string | undefined;
}

/**
 * Slack tells of a Stop of its own by the messages that grew, which carry no buttons while they stream, so the turn is
 * remembered by whoever writes it. Keeps the newest ones.
 */
export function createRunning(): Running {
  const turns = new Map<string, string>();

  return {
    note(messageId, turnId) {
      turns.delete(messageId);
      turns.set(messageId, turnId);
      const [oldest] = turns.keys();
      if (turns.size > MAX_NOTED && oldest !== undefined) turns.delete(oldest);
    },
    find: (messageId) => turns.get(messageId),
  };
}
