import type { Command } from "./command.ts";

export const IMAGINE: Command = {
  name: "imagine",
  description: "Create an image from words and attached images: `/imagine a lighthouse at dusk --ar 16:9 --count 2`.",
  usage: "what to show, or nothing for a form",
  needs: "pictures",
};
