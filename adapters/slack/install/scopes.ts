/** The scopes that the bot token needs, and why. The same as in `manifest.json`. */
export const SCOPES: Readonly<Record<string, string>> = {
  "app_mentions:read": "to hear when the bot is mentioned",
  "assistant:write": "to say that it is thinking, and to suggest what to ask",
  "channels:history": "to follow a thread of a public channel that it is part of",
  "channels:read": "to know channels that are mentioned by their names",
  "chat:write": "to answer",
  commands: "for its commands and shortcuts",
  "files:read": "to see the pictures and files people attach",
  "files:write": "to bring pictures and long answers",
  "groups:history": "to follow a thread of a private channel that it is part of",
  "groups:read": "to tell who is in a private channel, before a form brings a picture there",
  "im:history": "to hear direct messages",
  "im:read": "to tell whose a direct conversation is, before a form brings a picture there",
  "mpim:history": "to hear direct messages of several people",
  "mpim:read": "to tell who is in a direct conversation of several people, before a form brings a picture there",
  "reactions:write": "to show at a question that it waits for its turn",
  "users:read": "to know people by their names, and who is an administrator",
};
