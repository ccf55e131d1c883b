import { openStories } from "./failures.ts";
import type { View } from "./view.ts";

/** The latest answers, each with the context that the model was given. */
export const openConversations: View = (root) =>
  openStories(root, {
    path: "turns",
    title: "Conversations",
    about: "The latest 500 answers of all processes, and what the model was given for each of them.",
    nothing: "Nothing has been answered yet.",
    showsSight: true,
  });
