/** Texts that no version writes, or that only a newer version writes. */
export const GARBAGE = [
  "",
  "\u0000\uFFFD not JSON",
  "null",
  "7",
  "{}",
  "[]",
  "[[]]",
  '{"by":7,"key":{},"value":null,"until":"soon"}',
  '{"kind":"message"}',
  '{"kind":"poll","key":"k","conversationId":"c","author":{"id":"a","name":"A"},"reply":{"platform":"p","channelId":"c"},"at":1}',
  '{"erased":true}',
  '{"work":{},"since":{}}',
  JSON.stringify("x".repeat(2_000_000)),
] as const;
